"""Checkpoints that a run writes and keeps, by its `CheckpointParameters`, and their size."""

import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from coach_rl.configuration.strict_json import Json
from coach_rl.core.errors import CheckpointError, ConfigurationError, warn
from coach_rl.core.log_records import LogRecord
from coach_rl.core.runtime import OnActivity, ignore_activity
from coach_rl.core.shown_text import readable
from coach_rl.core.state import Appended, State
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers.parameters import CheckpointParameters, Moments
from coach_rl.runs.checkpoint import (
    BEST,
    LAST,
    POINTERS,
    Checkpoint,
    begin_checkpoint,
    find_checkpoint,
    free_path,
    list_checkpoints,
    point,
    pointed,
    read_notes,
    remove_checkpoint,
    remove_unfinished,
    write_checkpoint,
)
from coach_rl.runs.folder import RunFolder
from coach_rl.runs.logs import log_notes
from coach_rl.runs.packing import NOTHING_STORED
from coach_rl.telemetry.figures import Best, candidate, is_better, is_measured_by


@dataclass(frozen=True, kw_only=True)
class Periodic:
    """The newest periodic checkpoint."""

    number: int = 0
    """Its number, from 1; 0 before the first."""
    environment_steps: int = 0
    """The moment at which it was taken, in environment steps as a rule."""
    seconds: float = 0.0
    """Seconds of the run's own time at which it was taken."""


def require_same_seed(checkpoint: Checkpoint, seed: int) -> None:
    """Raise `CheckpointError` where a checkpoint is of a run with another seed than the manifest's.

    Evaluations and rows of later runs draw from the seed, so nothing else would reveal it.
    """
    taken_with = checkpoint.notes.get("seed")
    if taken_with != seed:
        raise CheckpointError(
            f"the manifest has seed {seed}, but {checkpoint.path} was taken with seed "
            f"{taken_with}; the manifest has been changed or damaged: put its seed back, or start "
            "a new run"
        )


def best_so_far(folder: RunFolder, policy: CheckpointParameters) -> Best | None:
    """The best evaluation up to a run's last checkpoint; None before the first.

    Args:
        folder: The run's folder, after it has been opened to continue.
        policy: Names the metric; an evaluation that was the best by another one does not count.
    """
    if not list_checkpoints(folder.checkpoints):
        return None
    best = _noted_best(read_notes(find_checkpoint(folder.checkpoints)))
    return best if best is not None and is_measured_by(best, policy) else None


Reason = Literal["best", "periodic", "last", "awaited", "asked"]
"""Reason for a checkpoint; a periodic one may stay once it is neither best nor last, an awaited one
stays until the evaluation of its agents is over, which may find that it is the best, and one that a
callback has requested stays in any case."""


class CheckpointKeeper:
    """Writes a run's checkpoints, remembers its best evaluation, removes the others.

    All it remembers is noted in each checkpoint, so a resumed run keeps those that the same run
    would have kept without a pause.

    Args:
        folder: The run's folder.
        state: What to save: the graph manager's `state_dict`.
        policy: When to save, and what stays.
        seed: The run's, kept beside the state for `require_same_seed`.
        unit: Unit of its moments, by which checkpoints are named.
        on_activity: Called when a checkpoint is written, with its size.
    """

    def __init__(
        self,
        folder: RunFolder,
        state: Callable[[], State],
        *,
        policy: CheckpointParameters,
        seed: int = 0,
        unit: type[Moments] = EnvironmentSteps,
        on_activity: OnActivity = ignore_activity,
    ) -> None:
        self._folder = folder
        self._state = state
        self._policy = policy
        self._seed = seed
        self._on_activity = on_activity
        self._moment = unit.counted
        self._saved_at = 0.0
        """Seconds of the run's own time at the newest checkpoint."""
        self._periodic = Periodic()
        self._stored = NOTHING_STORED
        self.best: Best | None = None
        self._awaited: dict[str, str] = {}
        """Names of the awaited checkpoints, by their moments."""

    @property
    def is_enabled(self) -> bool:
        """True if the run keeps checkpoints at all."""
        return self._policy.enabled

    def reasons(self, record: LogRecord) -> set[Reason]:
        """The reasons for a checkpoint right after a record; none where none is due.

        A run without checkpoints may still have a best evaluation to `save`.
        """
        policy = self._policy
        reasons = set[Reason]()
        if record.kind == "evaluation":
            new = candidate(record, policy, "")
            if new is not None and is_better(new, self.best, policy):
                reasons.add("best")
        if not policy.enabled:
            return reasons
        if self._is_periodic_due(record):
            reasons.add("periodic")
        lost = record.wall_seconds - self._saved_at
        most = policy.lost_at_most_seconds
        if most is not None and lost >= most:
            reasons.add("last")
        return reasons

    def begin(self, record: LogRecord) -> None:
        """Leave a trace of a checkpoint before the log announces it; `save` reports failures."""
        with suppress(OSError):
            begin_checkpoint(free_path(self._folder.checkpoints, self._moment(record)))

    def save(self, reasons: set[Reason], record: LogRecord) -> None:
        """Write a checkpoint and let `last` (and `best`, where it is) point to it.

        Without checkpoints only the best evaluation is remembered.

        Args:
            reasons: Why it is written.
            record: The newest record; with the reason "best" the evaluation that is now best.

        Raises:
            CheckpointError: It cannot be written.
        """
        checkpoints = self._folder.checkpoints
        steps = self._moment(record)
        path = free_path(checkpoints, steps)
        self._saved_at = record.wall_seconds
        before = self.best, self._periodic, self._awaited
        if "awaited" in reasons:
            self._awaited = {**self._awaited, str(steps): path.name}
        if "best" in reasons:
            self.best = candidate(record, self._policy, path.name)
        if not self._policy.enabled:
            return
        if "periodic" not in reasons and steps == self._periodic.environment_steps > 0:
            reasons = {*reasons, "periodic"}  # in place of the one that is there, of these steps
        elif "periodic" in reasons:
            number = self._periodic.number + 1
            self._periodic = Periodic(
                number=number, environment_steps=steps, seconds=record.wall_seconds
            )
        try:
            self._write(path, reasons)
        except BaseException as error:
            self.best, self._periodic, self._awaited = before
            if isinstance(error, OSError):
                raise CheckpointError(f"cannot write to {checkpoints}: {error}") from error
            raise
        self._remove_unwanted()

    def settle(self, evaluation: LogRecord) -> None:
        """Record the evaluation of a pending checkpoint, which may be the best."""
        name = self._awaited.pop(str(self._moment(evaluation)), "")
        new = candidate(evaluation, self._policy, name)
        if new is not None and is_better(new, self.best, self._policy):
            if name:
                point(self._folder.checkpoints, BEST, name)
            if name or not self._policy.enabled:
                self.best = new
        self._remove_unwanted()

    def drop_pending(self) -> None:
        """Stop keeping checkpoints whose evaluation is pending."""
        self._awaited = {}
        self._remove_unwanted()

    def restore(self, checkpoint: Checkpoint | None) -> None:
        """Continue from a checkpoint: later ones are removed, and best is what it was then.

        Unfinished checkpoints of a process that was killed are removed; without a checkpoint they
        stay until the first is written, as a sign that none has been deleted.

        Args:
            checkpoint: Where to continue; None for the very beginning of a run without checkpoints.
        """
        checkpoints = self._folder.checkpoints
        if checkpoint is None:
            return
        remove_unfinished(checkpoints)
        kept = list_checkpoints(checkpoints)
        kept = kept[: kept.index(checkpoint.path) + 1]
        best = self._recall(checkpoint)
        known = {each.name for each in kept}
        point(checkpoints, LAST, checkpoint.path.name)
        point(checkpoints, BEST, best.checkpoint if best and best.checkpoint in known else None)
        for path in list_checkpoints(checkpoints):
            if path not in kept:
                remove_checkpoint(path)
        self._remove_unwanted()

    def begin_at(self, checkpoint: Checkpoint, moment: int) -> None:
        """Save the state that another run's checkpoint has led to, as the first of this run.

        Args:
            checkpoint: The other run's; what it has of memories is shared with it.
            moment: Where the run stands.
        """
        path = free_path(self._folder.checkpoints, moment)
        self._recall(checkpoint)
        is_best = self.best is not None and self.best.checkpoint == checkpoint.path.name
        self.best = replace(self.best, checkpoint=path.name) if self.best and is_best else None
        is_awaited = checkpoint.path.name in self._awaited.values()
        self._awaited = {str(moment): path.name} if is_awaited else {}
        if self.is_enabled:
            self._write(path, {"best", "last"} if is_best else {"last"})

    def _recall(self, checkpoint: Checkpoint) -> Best | None:
        """Remember what a checkpoint notes of the keeper that wrote it; return its best."""
        notes = checkpoint.notes
        try:
            best = _noted_best(notes)
            self._periodic = Periodic(**notes["newest_periodic"])
            self._stored = checkpoint.stored
            self._saved_at = notes["seconds"]
        except (KeyError, TypeError) as error:
            raise CheckpointError(
                f"checkpoint {checkpoint.path} is damaged: its notes on the best evaluation or on "
                "periodic checkpoints are of another shape"
            ) from error
        self._awaited = dict(notes.get("awaited", {}))
        self.best = best if best is not None and is_measured_by(best, self._policy) else None
        return best

    def _write(self, path: Path, reasons: set[Reason]) -> None:
        state = self._state()
        size = readable(size_of(state, memories=self._policy.memories))
        self._on_activity(f"writing a checkpoint of {size}")
        try:
            self._stored = write_checkpoint(
                path,
                state,
                self._notes(reasons),
                earlier=self._stored,
                memories=self._policy.memories,
            )
        finally:
            self._on_activity("")
        if "best" in reasons:
            point(path.parent, BEST, path.name)
        point(path.parent, LAST, path.name)
        self._remove_unwanted()

    def _is_periodic_due(self, record: LogRecord) -> bool:
        policy = self._policy
        newest = self._periodic
        seconds = policy.every_seconds
        steps = policy.every_steps
        if seconds is not None and record.wall_seconds - newest.seconds >= seconds:
            return True
        if steps is None:
            return False
        return self._moment(record) // steps.count > newest.environment_steps // steps.count

    def _notes(self, reasons: set[Reason]) -> Json:
        return {
            "reasons": sorted(reasons),
            "periodic": self._periodic.number if "periodic" in reasons else None,
            "newest_periodic": vars(self._periodic),
            "seconds": self._saved_at,
            "best": None if self.best is None else vars(self.best),
            "seed": self._seed,
            **({"awaited": self._awaited} if self._awaited else {}),
            **log_notes(self._folder.path),
        }

    def _remove_unwanted(self) -> None:
        checkpoints = self._folder.checkpoints
        pointers = {pointed(checkpoints, pointer) for pointer in POINTERS}
        pointers |= set(self._awaited.values())
        numbers: set[int] = set()
        for path in reversed(list_checkpoints(checkpoints)):
            stays = self._stays(path, numbers)
            if path.name not in pointers and not stays:
                remove_checkpoint(path)

    def _stays(self, path: Path, newer: set[int]) -> bool:
        """Return whether a checkpoint stays that is neither best nor last; a damaged one does.

        Args:
            path: The checkpoint.
            newer: Numbers of newer periodic ones, which take the place of those of the same number;
                its own is added.
        """
        try:
            notes = read_notes(path)
        except CheckpointError:
            return True
        number = notes["periodic"]
        is_replaced = number in newer
        if number is not None:
            newer.add(number)
        if "asked" in notes["reasons"]:
            return True
        has_place = number is not None and not is_replaced
        return has_place and self._policy.stays(number, self._periodic.number)


def check_disk_space(
    state: State, folder: Path, *, checkpoints: int | None, planned_steps: int | None
) -> None:
    """Refuse a run whose checkpoints cannot be written; warn where they may fill the disk.

    Args:
        state: What checkpoints will hold of the agents, with their memories.
        folder: Where they will be; it need not exist yet.
        checkpoints: The most that stay; None: all that the run writes.
        planned_steps: Environment steps of the whole run, and so the most entries of a memory; None
            where it has another length.

    Raises:
        ConfigurationError: Not even one checkpoint with full memories has room.
    """
    least = most = 0
    for memory in _leaves(state):
        if not isinstance(memory, Appended) or not memory.capacity:
            continue
        entry = memory.dtype.itemsize
        saved = int((memory.ends - memory.first).sum())
        # A checkpoint's files can hold as much again that is not needed any more.
        full = 2 * memory.capacity * (checkpoints or 1)
        ever = full if planned_steps is None else planned_steps
        least += entry * max(0, min(memory.capacity, ever) - saved)
        most += entry * max(0, (ever if checkpoints is None else min(full, ever)) - saved)
    free = shutil.disk_usage(next(path for path in (folder, *folder.parents) if path.exists())).free
    remedy = (
        "free space, lower the memory's `capacity`, or leave memories out of checkpoints with "
        "--no_memories (checkpoints.memories=False)"
    )
    if least > free:
        raise ConfigurationError(
            f"a checkpoint with a full replay memory takes {readable(least)}, and {readable(free)} "
            f"are free in {folder}; {remedy}"
        )
    if most > free:
        warn(
            f"the checkpoints of this run may take {readable(most)} in all, and {readable(free)} "
            f"are free in {folder}; {remedy}",
        )


def size_of(state: object, *, memories: bool) -> int:
    """Bytes of all arrays and tensors in a state, and of what is `Appended` where that counts."""
    size = 0
    for part in _leaves(state):
        if isinstance(part, Appended):
            size += memories * part.dtype.itemsize * int((part.ends - part.first).sum())
        else:
            size += int(getattr(part, "nbytes", 0))
    return size


def _leaves(state: object) -> Iterator[object]:
    """All parts of a state that have no parts."""
    match state:
        case dict():
            for part in state.values():
                yield from _leaves(part)
        case list() | tuple():
            for part in state:
                yield from _leaves(part)
        case _:
            yield state


def _noted_best(notes: Json) -> Best | None:
    """The best evaluation in a checkpoint's notes."""
    noted = notes["best"]
    return None if noted is None else Best(**noted)
