"""The logs of a run: sinks of records, a checkpoint's notes on them, and cutting them back to it.

A file or service that cannot be written loses its lines; the run continues. A resumed run writes
all records after its checkpoint again, so those of the stopped run are cut off: text is counted in
lines, TensorBoard's event files in bytes. `faults/step_4096.txt` has the message of an error that
ended a run and other text, such as the traceback of an environment in a worker process,
`faults/step_4096.npz` the arrays where there are any.
"""

import contextlib
import os
import re
import shutil
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import ClassVar

import numpy as np

from coach_rl.configuration.file_writing import make_folder, without_links
from coach_rl.configuration.strict_json import Json, read_text, require_regular_file, require_types
from coach_rl.core.errors import CheckpointError, RunError, close_safely, in_one_line, warn
from coach_rl.core.log_records import LogRecord, Sink, SinkMaker, SinkParameters, SinkRun
from coach_rl.core.parts import TimedCall
from coach_rl.core.records import Array
from coach_rl.core.shown_text import printable_lines
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.runs.checkpoint import Checkpoint
from coach_rl.runs.folder import RunFolder
from coach_rl.runs.manifest import flat, introduction
from coach_rl.telemetry.description import described
from coach_rl.telemetry.log_files import CsvSink, ImageSink, JsonlSink, logged_names
from coach_rl.telemetry.tensorboard import TensorBoardSink

_CHUNK = 1 << 20
_TABLE = ".csv"
_NOTES = ("logs", "event_files", "headers", "crc32")
_WITHOUT = "move it out of the run's folder to continue without it"
RETRY_SECONDS = 10.0
"""Time before a file that could not be written is tried again."""
SERVICE_RETRY_SECONDS = 300.0
"""The same for a service, whose attempts may take as long as its network's time-outs."""


@dataclass(frozen=True)
class Cut:
    """The part of a log to keep."""

    path: Path
    """The log."""
    size: int | None
    """Bytes to keep; None drops the whole log."""

    def make(self) -> None:
        """Drop the rest."""
        if self.size is None:
            self.path.unlink()
            return
        with open(self.path, "rb+", opener=without_links) as file:
            file.truncate(self.size)
            os.fsync(file.fileno())


def log_notes(folder: Path) -> dict[str, Json]:
    """Notes on the logs of a run, by file name: lines or bytes, headers, checksums."""
    lines = {}
    checksums = {}
    headers = {}
    for path in _log_files(folder):
        lines[path.name], checksums[path.name] = _lines_and_checksum(path, path.stat().st_size)
        if path.suffix == _TABLE:
            headers[path.name] = _header(path)
    sizes = {path.name: path.stat().st_size for path in _event_files(folder)}
    return {
        "logs": lines,
        "event_files": sizes,
        "headers": headers,
        "crc32": checksums | {name: _checksum(folder / name, sizes[name]) for name in sizes},
    }


def planned_cuts(folder: Path, checkpoint: Checkpoint | None) -> list[Cut]:
    """Cuts after which the logs end where a checkpoint was taken; nothing is cut yet.

    TensorBoard's own way, a mark in the next file that takes back all from a step on, would also
    drop records of the checkpoint's own step from before it, and works only if that file is read
    last.

    Args:
        folder: The run's folder.
        checkpoint: With the notes that `log_notes` made. None: all logs go.

    Raises:
        CheckpointError: A log is shorter than it was then, or has been changed.

    Warns:
        CoachWarning: A log is gone.
    """
    if checkpoint is None:
        notes: Json = {key: {} for key in _NOTES}
    else:
        notes = checkpoint.notes
        types = dict.fromkeys(_NOTES, dict)
        require_types(notes, types, source=f"the notes of {checkpoint.path}")
    found = [*_log_files(folder), *_event_files(folder)]
    known = {**notes["logs"], **notes["event_files"]}
    if gone := sorted(known.keys() - {each.name for each in found}):
        warn(
            f"{folder} has lost {', '.join(gone)}; what the run had logged in it before is missing"
        )
    return [Cut(path, _size_then(path, notes) if path.name in known else None) for path in found]


def _size_then(path: Path, notes: Json) -> int:
    """Bytes that a log had when the checkpoint was taken; CheckpointError if they have changed."""
    require_regular_file(path)
    name = path.name
    checksum = notes["crc32"].get(path.name)
    if name in notes["logs"]:
        size = _end_of_line(path, notes["logs"][name])
        is_same = _lines_and_checksum(path, size)[1] == checksum
        is_same &= _header(path).startswith(notes["headers"].get(name, ""))
    else:
        size = notes["event_files"][name]
        if path.stat().st_size < size:
            raise CheckpointError(
                f"{path} has {path.stat().st_size} bytes, but had {size} when the checkpoint was "
                f"taken; {_WITHOUT}"
            )
        is_same = _checksum(path, size) == checksum
    if not is_same:
        raise CheckpointError(
            f"{path} is damaged or has been edited: it does not begin as it did when the "
            f"checkpoint was taken; {_WITHOUT}"
        )
    return size


def _end_of_line(path: Path, lines: int) -> int:
    """Bytes up to the end of a line, counted from 1."""
    with path.open("rb") as file:
        for line in range(lines):
            if not file.readline().endswith(b"\n"):
                raise CheckpointError(
                    f"{path} has {line} whole lines, but had {lines} when the checkpoint was "
                    f"taken; {_WITHOUT}"
                )
        return file.tell()


def _event_files(folder: Path) -> list[Path]:
    return sorted(folder.glob("events.out.tfevents.*"))


def _log_files(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.jsonl"), *folder.glob("*.csv")])


def _header(path: Path) -> str:
    """A table's first line; others have none."""
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.readline().rstrip("\n") if path.suffix == _TABLE else ""


def _lines_and_checksum(path: Path, size: int) -> tuple[int, int]:
    """Whole lines in the first bytes of a text file, and their checksum.

    A table may get columns later, with empty cells before: its header and the commas at the ends of
    its lines are left out.
    """
    lines = checksum = 0
    begun = b""
    for chunk in _chunks(path, size):
        whole, end, begun = (begun + chunk).rpartition(b"\n")
        text = whole + end
        if path.suffix == _TABLE:
            rows = text if lines else text.partition(b"\n")[2]
            checksum = zlib.crc32(re.sub(rb",+\n", b"\n", rows), checksum)
        else:
            checksum = zlib.crc32(text, checksum)
        lines += text.count(b"\n")
    return lines, checksum


def _checksum(path: Path, size: int) -> int:
    checksum = 0
    for chunk in _chunks(path, size):
        checksum = zlib.crc32(chunk, checksum)
    return checksum


def _chunks(path: Path, size: int) -> Iterator[bytes]:
    """The first bytes of a file, piece by piece."""
    with path.open("rb") as file:
        while size > 0 and (chunk := file.read(min(size, _CHUNK))):
            size -= len(chunk)
            yield chunk


class RunSinks:
    """Writes records to all sinks. One that cannot be written costs its lines, not the run.

    A warning names it once, writing is retried, and a `gap` record marks where lines continue.

    Args:
        folder: The run's folder.
        files: What makes each sink that writes into it, by the file's name for people.
        audience: Further sinks, closed by their owners.
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
        self._files: list[_File] = []
        for name, make in files.items():
            self._files.append(_File(folder, name, make))
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
    retried_at_checkpoints = True

    def __init__(self, folder: Path, name: str, make: Callable[[], Sink]) -> None:
        self._folder = folder
        self.name = name
        self._make = make
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
        is_milestone = self.retried_at_checkpoints and record.kind == "checkpoint"
        if self._lost and time.monotonic() < self._retry_at and not is_milestone:
            self._count()
            return
        try:
            self._folder.stat()  # a folder that is gone is not made again, without its manifest
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
        failed = self._sink
        self._sink = None
        if failed is not None:
            with contextlib.suppress(*self.errors):  # the same error once more
                failed.close()
        self._reason = getattr(error, "strerror", None) or in_one_line(error)
        if not self.lost_in_all:
            warn(
                f"{self.name} cannot be written: {self._failure(error)}; the run "
                "continues and its records are lost there until it can"
            )
        self._count()
        self._retry_at = time.monotonic() + self._retry_seconds()

    def _retry_seconds(self) -> float:
        return RETRY_SECONDS

    def _failure(self, error: BaseException) -> str:
        return write_failure(error, self._folder)

    def _count(self) -> None:
        self._lost += 1
        self.lost_in_all += 1


class _Service(_File):
    """A sink of the experiment's own, with unknown behaviour."""

    errors = (Exception, SystemExit)
    retried_at_checkpoints = False

    def _retry_seconds(self) -> float:
        return SERVICE_RETRY_SECONDS

    def _failure(self, error: BaseException) -> str:
        return in_one_line(error)

    def close(self) -> None:
        close_safely(self.name, super().close)


def write_failure(error: BaseException, folder: Path) -> str:
    """The reason why a folder cannot be written to, its name and the space that is left."""
    cause = error if isinstance(error, OSError) else error.__cause__
    strerror = cause.strerror if isinstance(cause, OSError) else None
    reason = strerror or str(cause or error)
    try:
        free = shutil.disk_usage(folder).free
    except OSError:
        return f"{reason}; the folder {folder} is gone"
    return f"{reason} in {folder}, which has {free / 1e9:.3f} GB free"


class WriteFailures:
    """Counts what could not be written, and warns of the first of a kind.

    Args:
        folder: The run's.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._counts: dict[str, int] = {}

    def note(self, kind: str, what: str, error: BaseException) -> str:
        """Count a failure; what it was, with the reason.

        Args:
            kind: The kind of what could not be written, in the plural.
            what: What it was.
            error: Why.
        """
        message = f"{what}: {write_failure(error, self._folder)}"
        if kind not in self._counts:
            warn(f"cannot write {message}; the run continues")
        self._counts[kind] = self._counts.get(kind, 0) + 1
        return message

    def counted(self) -> dict[str, int]:
        """The number of failures, by what they were."""
        return {f"{kind} that could not be written": n for kind, n in self._counts.items()}


def file_sinks(
    run: RunFolder, graph_manager: GraphManager, introduced: Json | None
) -> dict[str, Callable[[], Sink]]:
    """Makers of the sinks that write into the run's folder, by the files' names for people.

    Args:
        run: The run's folder.
        graph_manager: The experiment.
        introduced: The run's manifest, which TensorBoard introduces; None: no TensorBoard.
    """
    folder = run.path
    files: dict[str, Callable[[], Sink]] = {
        "log.jsonl": lambda: JsonlSink(folder / "log.jsonl"),
        "the CSV files": lambda: CsvSink(folder),
        "the pictures of notes": lambda: ImageSink(run.images),
    }
    if introduced is not None:
        preset = "" if introduced["preset"] is None else read_text(run.preset)
        files["TensorBoard's file"] = lambda: TensorBoardSink(
            folder,
            resumed_at=graph_manager.progress.moment or None,
            introduction=introduction(introduced, preset, described(graph_manager)),
            known=logged_names(folder, [each.name for each in graph_manager.graph.levels]),
        )
    return files


def service_sinks(
    run: RunFolder, graph_manager: GraphManager, manifest: Json
) -> dict[str, Callable[[], Sink]]:
    """Makers of the experiment's own sinks, by their names for people."""
    described = graph_manager.parameters.sinks
    if not described:
        return {}
    settings = {
        "seed": manifest["task"]["seed"],
        "level": manifest["level"],
        "preset": manifest["preset"] and manifest["preset"]["name"],
        "panel": manifest["panel"],
        **manifest["parameters"],
    }
    of_run = SinkRun(folder=run.path, manifest=manifest, settings=flat(settings))
    return {sink_name(each): partial(made_sink, each, of_run) for each in described}


def write_columns(file: Path, columns: Mapping[str, Array]) -> None:
    """Write arrays by name, and the folder around them; OSError where they cannot be written."""
    make_folder(file.parent)
    with open(file, "wb", opener=without_links) as target:
        np.savez(target, allow_pickle=False, **columns)


def write_evidence(folder: Path, error: RunError, environment_steps: int) -> str:
    """Write an error's message and its evidence.

    Args:
        folder: The run's.
        error: What stopped the run.
        environment_steps: Where it stood.

    Returns:
        The end of the error message, with the path of its data; empty if it carries none.
    """
    file = folder / "faults" / f"step_{environment_steps}"
    arrays = {name: part for name, part in error.evidence.items() if isinstance(part, np.ndarray)}
    texts = {name: part for name, part in error.evidence.items() if name not in arrays}
    try:
        make_folder(file.parent)
        paragraphs = [str(error), *(f"{name}:\n{text}" for name, text in texts.items())]
        with open(file.with_suffix(".txt"), "w", encoding="utf-8", opener=without_links) as target:
            target.write(printable_lines("\n\n".join(paragraphs)) + "\n")
        if arrays:
            write_columns(file.with_suffix(".npz"), arrays)
    except OSError as failure:
        return f"; its data could not be written: {failure}" if error.evidence else ""
    return f"; its data are in {file}.*" if error.evidence else ""


def made_sink(sink: SinkMaker | SinkParameters, run: SinkRun) -> Sink:
    """A sink from its description, or from its class."""
    return sink(run) if callable(sink) else sink.build(run)


def sink_name(sink: SinkMaker | SinkParameters) -> str:
    """A sink's name in messages: the `str` of its description if defined, or the class's name."""
    if callable(sink):
        return str(getattr(sink, "__name__", sink))
    has_text = type(sink).__str__ is not object.__str__
    return str(sink) if has_text else type(sink).__name__
