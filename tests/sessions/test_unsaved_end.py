"""Runs whose end cannot be written, and how they are finished once it can be."""

import errno
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coach_rl.cli.main import main
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.graph_managers import CheckpointParameters
from coach_rl.runs import keeper
from coach_rl.runs.checkpoint import find_checkpoint
from coach_rl.sessions import live_run
from coach_rl.sessions.session import resume_experiment, run_experiment
from coach_rl.sessions.settings import RunResult, RunSettings
from tests.small_runs import FAKE, experiment, lines_of, state_of

SETTINGS = RunSettings(
    tensorboard=False,
    final_episodes=EnvironmentEpisodes(1),
    checkpoints=CheckpointParameters(every_steps=EnvironmentSteps(32)),
)

pytestmark = pytest.mark.filterwarnings("ignore:cannot write the")


def run(root: Path) -> RunResult:
    """Its last checkpoints: periodic, then best or last, all at the last step."""
    manager = experiment(training=64, evaluation_interval=32, progress_interval=16, num_envs=2)
    return run_experiment(manager, Runtime(seed=1), name="end", root=root, settings=SETTINGS)


def failing_at(numbers: set[int], write: Callable[..., Any]) -> Callable[..., Any]:
    """A function of which some calls, counted from 1, fail as on a disk with errors."""
    calls = 0

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls in numbers:
            raise OSError(errno.EIO, "Input/output error")
        return write(*arguments, **named)

    return counted


def written(root: Path, monkeypatch: pytest.MonkeyPatch, fails: set[int]) -> RunResult:
    """A run of which some checkpoints cannot be written."""
    with monkeypatch.context() as patched:
        patched.setattr(keeper, "write_checkpoint", failing_at(fails, keeper.write_checkpoint))
        return run(root)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return run(tmp_path_factory.mktemp("whole"))


def assert_same_end(result: RunResult, whole: RunResult) -> None:
    """The same state, best evaluation and final evaluation; it is over and saved."""
    assert (result.unsaved, result.folder.summary.exists()) == (None, True)
    for name in ("last", "best"):
        networks = [state_of(each, name)["agents"]["main"]["network"] for each in (result, whole)]
        assert_same_state(*networks)
    assert result.best is not None
    assert whole.best is not None
    assert result.best.value == whole.best.value
    final = [
        [line["scalars"] for line in lines_of(each) if line["kind"] == "final_evaluation"]
        for each in (result, whole)
    ]
    assert final[0] == final[1]


def checkpoints_of(whole: RunResult) -> int:
    return [line["kind"] for line in lines_of(whole)].count("checkpoint")


@pytest.mark.parametrize("back", [1, 2, 3])
def test_run_without_its_last_checkpoints_is_finished_by_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: RunResult, back: int
) -> None:
    total = checkpoints_of(whole)
    fails = set(range(total + 1 - back, total + 10))
    failed = written(tmp_path, monkeypatch, fails)
    assert failed.summary is not None
    assert failed.unsaved is not None
    assert not failed.folder.summary.exists()
    assert_same_end(resume_experiment(failed.folder.path, settings=SETTINGS), whole)


@pytest.mark.parametrize("number", range(1, 6))
def test_run_without_one_checkpoint_has_the_same_best_and_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: RunResult, number: int
) -> None:
    result = written(tmp_path, monkeypatch, {number})
    if result.unsaved is not None:
        result = resume_experiment(result.folder.path, settings=SETTINGS)
    if number < checkpoints_of(whole) - 1:  # best of an earlier step is gone with it
        assert (result.unsaved, result.folder.summary.exists()) == (None, True)
    else:
        assert_same_end(result, whole)


def test_run_without_its_summary_is_finished_by_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: RunResult
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(live_run, "write_json", failing_at({1}, live_run.write_json))
        failed = run(tmp_path)
    assert failed.unsaved is not None
    assert failed.unsaved.startswith("the summary: Input/output")
    assert_same_end(resume_experiment(failed.folder.path, settings=SETTINGS), whole)


def test_run_whose_final_evaluation_fails_is_finished_by_resuming(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, whole: RunResult
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(live_run.LiveRun, "_summary", failing_at({1}, live_run.LiveRun._summary))
        with pytest.raises(OSError, match="Input/output error"):
            run(tmp_path)
    (folder,) = (tmp_path / "end").iterdir()
    assert_same_end(resume_experiment(folder, settings=SETTINGS), whole)


def test_command_says_how_to_finish_a_run_and_finishes_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["-p", str(FAKE), "-ep", str(tmp_path), "--plain", "-ntb", "--checkpoint_steps", "20"]
    words += ["-cp", "schedule.progress_interval=20", "-e"]
    assert main([*words, "whole"]) == 0
    (whole,) = (tmp_path / "whole").iterdir()
    last = [line["kind"] for line in lines_of(whole)].count("checkpoint")
    with monkeypatch.context() as patched:
        patched.setattr(keeper, "write_checkpoint", failing_at({last}, keeper.write_checkpoint))
        assert main([*words, "e"]) == 1
    said = capsys.readouterr()
    error = " ".join((said.out + said.err).split())
    assert "the end of this run is not saved: cannot write the checkpoint at 100" in error
    assert re.search(r"resume with: \S*coach -crd \S+", error)
    (folder,) = (tmp_path / "e").iterdir()
    assert find_checkpoint(folder / "checkpoints").name == "step_100"
    assert main(["-crd", str(folder), "--plain"]) == 0
    assert (folder / "summary.json").exists()
