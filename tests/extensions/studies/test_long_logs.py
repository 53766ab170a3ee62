"""Long logs are read record by record: what is kept doesn't grow with their length."""

import tracemalloc
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from coach_rl.core.errors import CheckpointError
from coach_rl.core.log_records import LogRecord
from coach_rl.extensions.studies.live import _WatchedRun, watch
from coach_rl.extensions.studies.logged import _curve
from coach_rl.extensions.studies.run_records import _evaluations_logged
from coach_rl.extensions.studies.scores import read_scores
from coach_rl.runs.folder import RunFolder
from coach_rl.sessions import session
from coach_rl.telemetry.log_files import JsonlReader
from tests.extensions.studies.written_runs import SUMMARY, record, write_run

RECORDS = 4_000
MOST_BYTES = 1_500_000
"""Of a log of some 4 MB, which would take more than that as text, and many times it as records."""


class Counting:
    """A viewer that keeps nothing."""

    def __init__(self) -> None:
        self.seen = 0

    def write(self, record: LogRecord) -> None:
        self.seen += 1

    def catch_up(self, records: Iterable[LogRecord]) -> None:
        self.seen = sum(1 for _ in records)

    def show_activity(self, activity: str, *, for_seconds: float = 0.0) -> None: ...

    def close(self) -> None: ...


def watched(run: Path) -> None:
    viewer = Counting()
    watch(run, viewer, poll_seconds=0.0)
    assert viewer.seen == RECORDS


def never_saved(run: Path) -> None:
    opened: Any = SimpleNamespace(folder=RunFolder(run), manifest={"parameters": {}})
    with pytest.raises(CheckpointError, match="have been deleted"):
        session._require_never_saved(opened)


READERS: dict[str, Callable[[Path], object]] = {
    "stream": lambda run: sum(1 for _ in JsonlReader(run / "log.jsonl").stream()),
    "watch": watched,
    "watch a table": lambda run: _WatchedRun(run).update(),
    "scores": read_scores,
    "logged": lambda run: _curve(run, "train/loss"),
    "records of a study": lambda run: _evaluations_logged(run / "log.jsonl"),
    "resume": never_saved,
}


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    scalars = {"train/loss": 1.0, **{f"train/{number}_{'x' * 20}": 0.5 for number in range(20)}}
    log = "".join(record("train", step, scalars) for step in range(RECORDS - 1))
    log += record("checkpoint", RECORDS, {})
    assert len(log) > 2 * MOST_BYTES
    return write_run(tmp_path_factory.mktemp("long") / "walks" / "run", log=log, summary=SUMMARY)


@pytest.mark.parametrize("reader", READERS)
def test_long_log_is_read_without_being_kept(reader: str, run: Path) -> None:
    READERS[reader](run)  # imports what it needs
    tracemalloc.start()
    try:
        READERS[reader](run)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_BYTES
