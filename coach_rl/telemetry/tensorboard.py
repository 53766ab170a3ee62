"""Scalars for TensorBoard, by environment steps."""

import contextlib
import os
import re
import socket
import time
from pathlib import Path

from tensorboard.compat.proto.event_pb2 import (  # type: ignore[import-untyped]  # has no types
    Event,
    SessionLog,
    SourceMetadata,
)
from tensorboard.compat.proto.summary_pb2 import (  # type: ignore[import-untyped]  # has no types
    Summary,
)
from tensorboard.summary.writer.record_writer import (  # type: ignore[import-untyped]  # has no types
    RecordWriter,
)

from coach_rl.telemetry.records import LogRecord
from coach_rl.telemetry.sinks import scalars_by_tag

FLUSH_SECONDS = 10.0
FORMAT = "brain.Event:2"
_PREFIX = "events.out.tfevents."


class TensorBoardSink:
    """Writes every scalar of every record; on disk at a record after ten seconds, or a checkpoint.

    An agent's scalars stand under `<level>/<agent>/`, so a hierarchy's levels lie side by side.
    TensorBoard's own writer has a thread, whose errors nobody could take.

    Args:
        folder: For the event files; made where there is none.
        resumed_at: Environment steps at which a resumed run continues; None for a new one. A
            TensorBoard that has been open since before is made to forget what the stopped run
            logged after them. On disk that must be gone already, see `experiment.run_folder`.
    """

    def __init__(self, folder: Path, *, resumed_at: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._forgotten_from = None if resumed_at is None else resumed_at + 1
        self._events: _EventFile | None = None
        """None until the first scalars: a run without any has no event file."""

    def write(self, record: LogRecord) -> None:
        """Its scalars."""
        if not record.scalars:
            return
        if self._events is None:
            self._events = _EventFile(self._folder, self._forgotten_from)
        summary = Summary(
            value=[
                Summary.Value(tag=tag, simple_value=value)
                for tag, value in scalars_by_tag(record).items()
            ]
        )
        # One event a record takes half the time of one for each of three scalars.
        self._events.add(Event(step=record.environment_steps, summary=summary))
        if record.kind == "checkpoint":  # which notes how long the file is
            self._events.flush()

    def close(self) -> None:
        """Flush and close."""
        if self._events is not None:
            self._events.close()
            self._events = None


class _EventFile:
    """A new event file.

    Args:
        folder: Where.
        forgotten_from: Step from which TensorBoard forgets what other files said; None: none.
    """

    def __init__(self, folder: Path, forgotten_from: int | None) -> None:
        stamp = f"{_later_than_all(folder):010d}.{socket.gethostname()}.{os.getpid()}"
        self._path = folder / f"{_PREFIX}{stamp}"
        self._file = self._path.open("wb")
        self._records = RecordWriter(self._file)
        self._flushed = time.monotonic()
        try:
            self.add(Event(file_version=FORMAT, source_metadata=SourceMetadata(writer="coach_rl")))
            if forgotten_from is not None:
                start = SessionLog(status=SessionLog.START)
                self.add(Event(step=forgotten_from, session_log=start))
            self.flush()
        except OSError:
            self._path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):  # the same error once more
                self._file.close()
            raise

    def add(self, event: Event) -> None:
        event.wall_time = time.time()
        self._records.write(event.SerializeToString())
        if time.monotonic() - self._flushed >= FLUSH_SECONDS:
            self.flush()

    def flush(self) -> None:
        self._flushed = time.monotonic()
        self._file.flush()
        self._path.stat()  # raises where the file has been removed

    def close(self) -> None:
        self._file.close()


def _later_than_all(folder: Path) -> int:
    """Seconds of now, or after the newest event file: TensorBoard reads files by their names.

    A run may be resumed within the second in which it began, or where the clock is behind.
    """
    names = (path.name for path in folder.glob(f"{_PREFIX}*"))
    stamps = (re.match(r"\d+", name.removeprefix(_PREFIX)) for name in names)
    return max([int(time.time()), *(int(stamp[0]) + 1 for stamp in stamps if stamp)])
