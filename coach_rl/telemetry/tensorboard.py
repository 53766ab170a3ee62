"""A run for TensorBoard: scalars by environment steps, and what explains them."""

import contextlib
import os
import re
import socket
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
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
from coach_rl.telemetry.tensorboard_layout import layout
from coach_rl.telemetry.tensorboard_values import (
    Setting,
    film_value,
    finished_value,
    histogram_value,
    layout_value,
    settings_values,
    text_value,
)

FLUSH_SECONDS = 10.0
FORMAT = "brain.Event:2"
_PREFIX = "events.out.tfevents."


@dataclass(frozen=True, kw_only=True)
class Introduction:
    """The introduction of a run, shown before it has said anything."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """Texts in Markdown, by title."""
    settings: Mapping[str, Setting] = field(default_factory=dict)
    """Hyper-parameters by name."""


class TensorBoardSink:
    """Writes what records hold; on disk at a record after ten seconds, or a checkpoint.

    An agent's scalars stand under `<level>/<agent>/`, so a hierarchy's levels lie side by side. The
    layout of the charts is written anew whenever a metric is the first of its chart.
    TensorBoard's own writer has a thread, whose errors nobody could take.

    Args:
        folder: For the event files; made where there is none.
        resumed_at: Environment steps at which a resumed run continues; None for a new one. A
            TensorBoard that has been open since before is made to forget what the stopped run
            logged after them. On disk that must be gone already, see `experiment.run_folder`.
        introduction: Written before everything else, where no file is there yet; None for nothing.
        known: Tags of the scalars that the run has had before, which the charts cover from the
            beginning.
    """

    def __init__(
        self,
        folder: Path,
        *,
        resumed_at: int | None = None,
        introduction: Introduction | None = None,
        known: Iterable[str] = (),
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._resumed_at = folder, resumed_at
        self._introduction = introduction or Introduction()
        self._tags, self._layout = dict.fromkeys(known), layout(())
        self._events: _EventFile | None = None
        """None until the first record with something to show: a run without any has no file."""

    def write(self, record: LogRecord) -> None:
        """All that TensorBoard can show of it."""
        prefix = "".join(f"{name}/" for name in (record.level, record.agent) if name)
        scalars = scalars_by_tag(record)
        values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
        if record.kind == "video" and record.text.endswith(".gif"):
            file = self._folder / record.text
            kind = re.sub(r"^step_\d+_?", "", file.stem) or "evaluation"
            values.append(film_value(f"videos/{kind}", file.read_bytes()))
        if record.kind == "histogram":
            values += [
                histogram_value(f"{prefix}{name}", bins.reshape(-1, 3))
                for name, bins in record.arrays.items()
            ]
        if not values:
            return
        if self._events is None:
            self._events = self._begun()
        if scalars.keys() - self._tags.keys() or self._layout is None:
            self._lay_out(scalars)
        if record.kind == "final_evaluation":
            values.append(finished_value(time.time()))
        # One event a record takes half the time of one for each of three scalars.
        self._events.add(Event(step=record.environment_steps, summary=Summary(value=values)))
        if record.kind == "checkpoint":  # which notes how long the file is
            self._events.flush()

    def close(self) -> None:
        """Flush and close."""
        if self._events is not None:
            self._events.close()
            self._events = None

    def _begun(self) -> "_EventFile":
        """A new file; a run's first begins with the introduction."""
        is_first = not any(self._folder.glob(f"{_PREFIX}*"))
        step = self._resumed_at
        events = _EventFile(self._folder, None if step is None else step + 1)
        texts, settings = self._introduction.texts, self._introduction.settings
        values = [text_value(f"run/{title}", text) for title, text in texts.items()]
        values += settings_values(settings, time.time()) if settings else []
        if is_first and values:
            events.add(Event(summary=Summary(value=values)))
        return events

    def _lay_out(self, scalars: Iterable[str]) -> None:
        """Write the layout if these scalars change it."""
        assert self._events is not None
        self._tags |= dict.fromkeys(scalars)
        charts = layout(self._tags)
        if charts is not None and charts != self._layout:
            self._events.add(Event(summary=Summary(value=[layout_value(charts)])))
            self._layout = charts


class _EventFile:
    """A new event file.

    Args:
        folder: Where.
        forgotten_from: Step from which TensorBoard forgets what other files said; None: none.
    """

    def __init__(self, folder: Path, forgotten_from: int | None) -> None:
        stamp = f"{_later_than_all(folder):010d}.{socket.gethostname()}.{os.getpid()}"
        self._path = folder / f"{_PREFIX}{stamp}"
        self._file = self._path.open("xb")
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
