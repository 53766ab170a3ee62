"""Files that cannot be written cost their lines or a checkpoint, and not the run."""

import csv
import json
import resource
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_file_loader import EventFileLoader

import coach_rl as rl
from coach_rl.core.log_records import LogRecord
from coach_rl.runs import logs
from coach_rl.runs.checkpoint import list_checkpoints
from coach_rl.sessions.session import Audience, RunResult
from tests.small_runs import lines_of, preset, state_of

SETTINGS = rl.RunSettings(final_episodes=rl.EnvironmentEpisodes(1))
LOSSES = "ignore:(log.jsonl|the CSV files|TensorBoard's file) cannot be written"


class Faults:
    """Refuses all writing to disk while a run is between two steps, or removes its folder."""

    def __init__(self, begin: int, end: int, *, folder: Path | None = None) -> None:
        self._begin, self._end, self._folder = begin, end, folder
        _, self._hard = resource.getrlimit(resource.RLIMIT_FSIZE)

    def write(self, record: LogRecord) -> None:
        if record.environment_steps >= self._end:
            self.close()
        elif record.environment_steps >= self._begin:
            if self._folder is not None:
                for run in self._folder.glob("w/*"):
                    shutil.rmtree(run)
            else:
                resource.setrlimit(resource.RLIMIT_FSIZE, (0, self._hard))

    def close(self) -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (self._hard, self._hard))


@pytest.fixture(autouse=True)
def retried_at_once(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A file that failed is tried again with the next record; the disk is good afterwards."""
    monkeypatch.setattr(logs, "RETRY_SECONDS", 0.0)
    yield
    Faults(0, 0).close()


def run(root: Path, faults: Faults | None = None, **panel: Any) -> RunResult:
    audience = Audience(sinks=() if faults is None else (faults,))
    return rl.run_experiment(
        preset().build(panel),
        rl.Runtime(seed=3),
        name="w",
        root=root,
        settings=SETTINGS,
        audience=audience,
    )


def history_of(result: RunResult) -> Any:
    return state_of(result)["agents"]["main"]["history"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run whose disk is good."""
    return run(tmp_path_factory.mktemp("whole"))


def test_full_disk_costs_lines_and_checkpoints_until_there_is_room(whole, tmp_path: Path) -> None:
    with pytest.warns(rl.CoachWarning) as told:
        result = run(tmp_path / "full", Faults(40, 70))
    assert np.array_equal(history_of(result), history_of(whole))
    messages = [str(warning.message) for warning in told]
    for name in ("log.jsonl", "the CSV files", "TensorBoard's file", "the checkpoint at "):
        (message,) = [each for each in messages if name in each]
        assert "File too large" in message
        assert f" in {result.folder.path}, which has " in message
        assert "GB free; the run continues" in message
    lines = lines_of(result)  # all of them whole
    (gap,) = [line for line in lines if line["kind"] == "gap"]
    steps = [line["environment_steps"] for line in lines]
    assert not [step for step in steps if 40 < step < 70]
    lost = len(lines_of(whole)) - len([line for line in lines if line["kind"] != "gap"])
    assert gap["scalars"]["log/lost_records"] >= lost
    with (result.folder.path / "gaps.csv").open() as file:
        assert next(csv.DictReader(file))["environment_steps"] == str(gap["environment_steps"])
    assert result.unsaved is None
    summary = json.loads(result.folder.summary.read_text())
    assert [each.split(" lost ")[0] for each in summary["incidents"]][1:] == [
        "log.jsonl",
        "the CSV files",
        "TensorBoard's file",
    ]
    assert summary["incidents"][0].startswith("checkpoints that could not be written: ")


@pytest.mark.filterwarnings(LOSSES)
def test_resumed_run_with_lost_lines_is_exact(whole, tmp_path: Path) -> None:
    with pytest.warns(rl.CoachWarning):
        part = run(tmp_path / "part", Faults(40, 60), signal_at=75)
    assert part.signal is not None
    resumed = rl.resume_experiment(part.folder.path, settings=SETTINGS)
    assert np.array_equal(history_of(resumed), history_of(whole))
    assert [line["kind"] for line in lines_of(resumed)].count("gap") == 1
    steps = [line["environment_steps"] for line in lines_of(resumed)]
    assert steps == sorted(steps)
    for path in resumed.folder.path.glob("events.out.tfevents.*"):
        assert list(EventFileLoader(str(path)).Load())


@pytest.mark.filterwarnings(LOSSES)
@pytest.mark.filterwarnings("ignore:cannot write the summary")
def test_run_with_an_unsaved_end_reports_it(whole, tmp_path: Path) -> None:
    with pytest.warns(rl.CoachWarning):
        result = run(tmp_path, Faults(70, 1000))
    Faults(0, 0).close()
    assert result.summary is not None
    assert result.unsaved is not None
    assert "the checkpoint at 100 environment steps: " in result.unsaved
    assert history_of(result).size < 80
    assert not list(result.folder.checkpoints.glob(".*"))
    resumed = rl.resume_experiment(result.folder.path, settings=SETTINGS)
    assert np.array_equal(history_of(resumed), history_of(whole))


@pytest.mark.filterwarnings(LOSSES)
@pytest.mark.filterwarnings("ignore:cannot write the summary")
def test_run_with_a_removed_folder_continues_without_it(tmp_path: Path) -> None:
    with pytest.warns(rl.CoachWarning):
        result = run(tmp_path, Faults(30, 1000, folder=tmp_path))
    assert result.environment_steps == 100
    assert result.summary is not None
    assert result.unsaved is not None
    assert not result.folder.path.exists()
    assert list_checkpoints(result.folder.checkpoints) == []


@pytest.mark.filterwarnings(LOSSES)
@pytest.mark.filterwarnings("ignore:cannot write the (checkpoint|summary)")
def test_resumed_run_without_any_checkpoint_begins_again(whole, tmp_path: Path) -> None:
    result = run(tmp_path, Faults(20, 1000))
    assert result.unsaved is not None
    Faults(0, 0).close()
    resumed = rl.resume_experiment(result.folder.path, settings=SETTINGS)
    assert np.array_equal(history_of(resumed), history_of(whole))
