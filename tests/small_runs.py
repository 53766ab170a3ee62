"""Small experiments, and what tests read of the folders of their runs."""

import json
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

from coach_rl.configuration.preset_file import Preset, load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.log_records import LogRecord
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.graph_managers import BasicRLGraphManager
from coach_rl.runs.checkpoint import find_checkpoint, read_checkpoint
from coach_rl.runs.folder import RunFolder, write_manifest
from coach_rl.sessions.settings import RunResult, RunSettings
from tests.builders import flat, ppo

FAKE = Path(__file__).with_name("fake_preset.py")
STACK = Path(__file__).parent / "cli" / "stack_preset.py"
TWO_LEVELS = Path(__file__).parent / "golden" / "two_levels.py"
"""Presets with a learning agent on each of two levels."""
QUIET = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(0))
"""Settings of runs without TensorBoard's files and a final evaluation."""


def preset(path: Path | str = FAKE) -> Preset:
    return load_preset(find_preset(str(path)))


def experiment(agent: Any = None, environment: Any = None, **given: Any) -> BasicRLGraphManager:
    """A small experiment: PPO on the point mass for 100 steps, unless something else is given.

    Args:
        agent: Parameters of the agent.
        environment: Parameters of the environment.
        given: Parameters of the graph and of its schedule.
    """
    return BasicRLGraphManager(flat(agent or ppo(), environment, **{"training": 100, **given}))


def folder_of(run: RunResult | RunFolder | Path) -> Path:
    run = run.folder if isinstance(run, RunResult) else run
    return run.path if isinstance(run, RunFolder) else run


def state_of(run: RunResult | RunFolder | Path, name: str = "last") -> Any:
    """The state in a checkpoint of a run."""
    return read_checkpoint(find_checkpoint(folder_of(run) / "checkpoints", name)).state


def lines_of(run: RunResult | RunFolder | Path) -> list[dict[str, Any]]:
    """The log of a run."""
    text = (folder_of(run) / "log.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def log_of(
    run: RunResult | RunFolder | Path, without: Collection[str] = ("checkpoint", "progress")
) -> list[dict[str, Any]]:
    """The log of a run without times and loads, and without some kinds of records."""
    lines = [line for line in lines_of(run) if line["kind"] not in without]
    for line in lines:
        del line["wall_seconds"]
        for name in [*line["scalars"]]:
            if name.startswith(("time/", "resources/")):
                del line["scalars"][name]
    return lines


def manifest_of(run: RunResult | RunFolder | Path) -> dict[str, Any]:
    return dict(json.loads((folder_of(run) / "manifest.json").read_text()))


def change_manifest(run: RunResult | RunFolder | Path, **changes: Any) -> None:
    """Replace parts of a manifest, under a checksum that fits."""
    write_manifest(RunFolder(folder_of(run)), manifest_of(run) | changes)


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder, but for locks."""
    files = (path for path in folder.rglob("*") if path.is_file() and path.name != ".lock")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


class AtRecord:
    """A sink that does something once, at the first record for which a condition holds.

    Args:
        condition: The condition.
        do: What is done; the default stops the run as a second Ctrl-C does, which saves nothing.
    """

    def __init__(
        self, condition: Callable[[LogRecord], bool], do: Callable[[], object] | None = None
    ) -> None:
        self._condition, self._do, self._is_over = condition, do, False

    def write(self, record: LogRecord) -> None:
        if not self._is_over and self._condition(record):
            self._is_over = True
            if self._do is None:
                raise KeyboardInterrupt
            self._do()

    def close(self) -> None: ...
