"""The sinks of a run: its own files and services, which may fail, and the audience's."""

import contextlib
import shutil
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from coach_rl.core.errors import CoachWarning, in_one_line
from coach_rl.core.profiling import TimedCall
from coach_rl.telemetry.records import LogRecord
from coach_rl.telemetry.sinks import Sink

RETRY_SECONDS = 10.0
"""Time before a file that could not be written is tried again."""


SERVICE_RETRY_SECONDS = 300.0
"""The same for a service, whose attempts may take as long as its network's time-outs."""


class RunSinks:
    """Writes records to all sinks. One that cannot be written costs its lines, not the run.

    It is said once, tried again, and marked by a `gap` record where the lines continue.

    Args:
        folder: The run's folder.
        files: What makes each sink that writes into it, by the file's name for people.
        audience: Further sinks, closed by whoever made them.
        services: What makes each of the experiment's own sinks, by its name for people. An error
            of theirs is one of writing.
    """

    def __init__(
        self,
        folder: Path,
        files: Mapping[str, Callable[[], Sink]],
        audience: Sequence[Sink] = (),
        *,
        services: Mapping[str, Callable[[], Sink]] | None = None,
    ) -> None:
        self._files = [_File(folder, name, make) for name, make in files.items()]
        for name, make in (services or {}).items():
            self._files.append(_Service(folder, name, make))
        self._audience = audience

    @property
    def incidents(self) -> list[str]:
        """Losses, a line a file."""
        return [each.loss for each in self._files if each.lost_in_all]

    def timed_calls(self) -> list[TimedCall]:
        """The calls whose times a profile shows."""
        return [
            TimedCall(self, "write", "logging"),
            *(TimedCall(each, "write", each.name) for each in self._files),
            *(TimedCall(each, "write", type(each).__name__) for each in self._audience),
        ]

    def write(self, record: LogRecord) -> None:
        """Write it wherever that can be done; files leave out what is not for them."""
        files = self._files if record.is_in_files else ()
        for sink in (*files, *self._audience):
            sink.write(record)

    def close(self) -> None:
        """Close the run's own files and services; a later record opens them again."""
        for each in self._files:
            each.close()


class _File:
    """A sink that writes into the run's folder, opened when it is needed."""

    errors: ClassVar[tuple[type[BaseException], ...]] = (OSError,)
    """Errors that count as being unable to write."""

    def __init__(self, folder: Path, name: str, make: Callable[[], Sink]) -> None:
        self._folder, self.name, self._make = folder, name, make
        self._sink: Sink | None = None
        """None before the first record, after `close`, and while it fails."""
        self._retry_at = 0.0
        self._lost = 0
        """Records lost since the last one that was written."""
        self.lost_in_all = 0
        self._reason = ""

    @property
    def loss(self) -> str:
        return f"{self.name} lost {self.lost_in_all:,} records ({self._reason})"

    def write(self, record: LogRecord) -> None:
        if self._lost and not self._is_tried_again(record):
            self._count()
            return
        try:
            self._folder.stat()  # a folder that is gone is not made anew, without its manifest
            if self._sink is None:
                self._sink = self._make()
            if self._lost:
                scalars = {"log/lost_records": float(self._lost)}
                gap = replace(record, kind="gap", level="", agent="", scalars=scalars, arrays={})
                self._sink.write(gap)
                self._lost = 0
            self._sink.write(record)
        except self.errors as error:
            self._fail(error)

    def close(self) -> None:
        if self._sink is not None:
            try:
                self._sink.close()
            except self.errors as error:
                self._fail(error)
            self._sink = None

    def _fail(self, error: BaseException) -> None:
        failed, self._sink = self._sink, None
        if failed is not None:
            with contextlib.suppress(*self.errors):  # the same error once more
                failed.close()
        self._reason = getattr(error, "strerror", None) or in_one_line(error)
        if not self.lost_in_all:
            warnings.warn(
                f"{self.name} cannot be written: {self._trouble(error)}; the run "
                "continues and its records are lost there until it can",
                CoachWarning,
                stacklevel=2,
            )
        self._count()
        self._retry_at = time.monotonic() + self._retry_seconds()

    def _is_tried_again(self, record: LogRecord) -> bool:
        return time.monotonic() >= self._retry_at or record.kind == "checkpoint"

    def _retry_seconds(self) -> float:
        return RETRY_SECONDS

    def _trouble(self, error: BaseException) -> str:
        return trouble(error, self._folder)

    def _count(self) -> None:
        self._lost += 1
        self.lost_in_all += 1


class _Service(_File):
    """A sink of the experiment's own, of which nothing is known."""

    errors = (Exception, SystemExit)

    def _is_tried_again(self, record: LogRecord) -> bool:  # noqa: ARG002 (a checkpoint is no reason)
        return time.monotonic() >= self._retry_at

    def _retry_seconds(self) -> float:
        return SERVICE_RETRY_SECONDS

    def _trouble(self, error: BaseException) -> str:
        return in_one_line(error)


def trouble(error: BaseException, folder: Path) -> str:
    """The reason why a folder cannot be written to, its name and the space that is left."""
    cause = error if isinstance(error, OSError) else error.__cause__
    strerror = cause.strerror if isinstance(cause, OSError) else None
    reason = strerror or str(cause or error)
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return f"{reason}; the folder {folder} is gone"
    return f"{reason} in {folder}, which has {free / 1e9:.3f} GB free"
