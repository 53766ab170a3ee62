"""A run that was killed and resumed has the logs of one that never stopped."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from coach_rl.core.errors import CheckpointError, CoachWarning
from coach_rl.core.log_records import LogRecord
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.runs.checkpoint import Checkpoint
from coach_rl.runs.keeper import CheckpointKeeper
from coach_rl.runs.logs import log_notes, planned_cuts
from coach_rl.runs.manifest import Origin
from coach_rl.sessions.session import Audience, RunSettings, resume_experiment, run_experiment
from coach_rl.sessions.stop_requests import Interrupted
from tests.small_runs import STACK, AtRecord, log_of, manifest_of, preset

PRESET = preset(STACK)
OFTEN = RunSettings(
    checkpoints=CheckpointParameters(every_seconds=1e-9), final_episodes=EnvironmentEpisodes(0)
)
"""A checkpoint whenever one can be taken."""


def run(root: Path, killed_at: tuple[str, str, int] | None = None) -> Path:
    def is_killed(record: LogRecord) -> bool:
        return (record.kind, record.phase.value, record.environment_steps) == killed_at

    try:
        run_experiment(
            PRESET.build({}),
            Runtime(seed=3),
            name="stack",
            root=root,
            origin=Origin(preset=PRESET),
            settings=OFTEN,
            audience=Audience(sinks=(AtRecord(is_killed),)),
        )
    except Interrupted:
        assert killed_at is not None
    (folder,) = (root / "stack").iterdir()
    return folder


def curves(folder: Path) -> Counter[tuple[str, int, float]]:
    """How often TensorBoard holds each number; times and checkpoints are each part's own."""
    events = EventAccumulator(str(folder))
    events.Reload()
    return Counter(
        (tag, event.step, event.value)
        for tag in events.Tags()["scalars"]
        if not tag.startswith(("time/", "resources/", "checkpoint/"))
        for event in events.Scalars(tag)
    )


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return run(tmp_path_factory.mktemp("whole"))


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize(
    "killed_at",
    [
        ("train", "train", 16),
        ("train", "train", 80),
        ("level", "test", 120),
        ("evaluation", "test", 120),
    ],
    ids=[
        "after a checkpoint at step 0",
        "while training",
        "in an evaluation at a checkpoint's step",
        "after that evaluation",
    ],
)
def test_tensorboard_after_a_kill_and_resume_equals_an_uninterrupted_run(
    uninterrupted: Path, tmp_path: Path, killed_at: tuple[str, str, int]
) -> None:
    folder = run(tmp_path, killed_at)
    resume_experiment(folder, settings=OFTEN)
    assert log_of(folder) == log_of(uninterrupted)
    assert curves(folder) == curves(uninterrupted)
    assert set(curves(folder).values()) == {1}


def test_tensorboard_has_no_doubles_where_the_older_event_file_sorts_last(
    uninterrupted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Event files are read by name, which begins with the clock's second."""
    with monkeypatch.context() as patched:
        ahead = SimpleNamespace(time=lambda: 9_999_999_999.0)
        patched.setattr("tensorboard.summary.writer.event_file_writer.time", ahead)
        folder = run(tmp_path, ("level", "test", 60))
    resume_experiment(folder, settings=OFTEN)
    assert curves(folder) == curves(uninterrupted)


def killed(*arguments: object) -> None:
    raise KeyboardInterrupt


def test_a_run_killed_before_a_pointer_says_where_its_first_checkpoint_is_continues_from_it(
    uninterrupted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("coach_rl.runs.keeper.point", killed)
        folder = run(tmp_path, ("train", "train", 16))
    assert [path.name for path in (folder / "checkpoints").iterdir()] == ["step_0"]
    resume_experiment(folder, settings=OFTEN)
    assert [part["from"] for part in manifest_of(folder)["resumes"]] == ["step_0"]
    assert log_of(folder) == log_of(uninterrupted)
    assert curves(folder) == curves(uninterrupted)


def test_a_run_killed_before_its_first_checkpoint_leaves_no_event_files_behind(
    uninterrupted: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(CheckpointKeeper, "save", killed)
        folder = run(tmp_path, ("phase", "train", 0))
    resume_experiment(folder, settings=OFTEN)
    assert log_of(folder) == log_of(uninterrupted)
    assert curves(folder) == curves(uninterrupted)


def cut_logs(folder: Path, notes: Any) -> None:
    checkpoint = Checkpoint(path=Path("step_1"), state={}, notes=notes)
    for each in planned_cuts(folder, checkpoint):
        each.make()


def test_cut_event_files_to_the_bytes_they_had(tmp_path: Path) -> None:
    first, second = (tmp_path / f"events.out.tfevents.{number}" for number in (1, 2))
    first.write_bytes(b"12345")
    notes = log_notes(tmp_path)
    assert notes["event_files"] == {first.name: 5}
    first.write_bytes(b"1234567")
    second.write_bytes(b"12")
    (tmp_path / "mine.txt").write_bytes(b"kept")
    cut_logs(tmp_path, notes)
    assert first.read_bytes() == b"12345"
    assert sorted(path.name for path in tmp_path.iterdir()) == [first.name, "mine.txt"]


def test_cut_text_to_the_lines_it_had(tmp_path: Path) -> None:
    log, table = tmp_path / "log.jsonl", tmp_path / "a.csv"
    log.write_text("1\n2\nhalf")
    notes = log_notes(tmp_path)
    log.write_text("1\n2\n3\n")
    table.write_text("x\n1\n")
    assert notes["logs"] == {"log.jsonl": 2}
    cut_logs(tmp_path, notes)
    assert log.read_text() == "1\n2\n"
    assert not table.exists()


def test_cut_with_a_damaged_log_changes_nothing(tmp_path: Path) -> None:
    log, table = tmp_path / "log.jsonl", tmp_path / "a.csv"
    log.write_text("1\n2\n")
    table.write_text("x\n1\n")
    notes = log_notes(tmp_path)
    table.write_text("x\n1\n2\n")
    log.write_text("1\n3\n")
    with pytest.raises(CheckpointError):
        cut_logs(tmp_path, notes)
    assert table.read_text() == "x\n1\n2\n"
    log.unlink()
    with pytest.warns(CoachWarning):
        cut_logs(tmp_path, notes)
    assert table.read_text() == "x\n1\n"
