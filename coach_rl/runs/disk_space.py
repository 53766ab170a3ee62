"""The disk space that a run's checkpoints will take, compared with what is free at its start."""

import shutil
import warnings
from collections.abc import Iterator
from pathlib import Path

from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.core.sizes import readable
from coach_rl.core.state import Appended, State


def check_disk_space(
    state: State, folder: Path, *, checkpoints: int | None, planned_steps: int | None
) -> None:
    """Refuse a run whose checkpoints cannot be written; warn where they may fill the disk.

    Args:
        state: What checkpoints will hold.
        folder: Where they will be; it need not exist yet.
        checkpoints: The most that stay; None: all that the run writes.
        planned_steps: Environment steps of the whole run, and so the most entries of a memory; None
            where it has another length.

    Raises:
        ConfigurationError: Not even one checkpoint with full memories has room.
    """
    least = most = 0
    for memory in (each for each in appended_in(state) if each.capacity):
        entry, saved = memory.dtype.itemsize, int((memory.ends - memory.first).sum())
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
        warnings.warn(
            f"the checkpoints of this run may take {readable(most)} in all, and {readable(free)} "
            f"are free in {folder}; {remedy}",
            CoachWarning,
            stacklevel=3,
        )


def size_of(state: object, *, memories: bool) -> int:
    """Bytes of all arrays and tensors in a state, and of what is `Appended` where that counts."""
    match state:
        case Appended():
            return memories * state.dtype.itemsize * int((state.ends - state.first).sum())
        case dict():
            return sum(size_of(part, memories=memories) for part in state.values())
        case list() | tuple():
            return sum(size_of(part, memories=memories) for part in state)
    return int(getattr(state, "nbytes", 0))


def appended_in(state: object) -> Iterator[Appended]:
    """Everything that is `Appended` in a state."""
    match state:
        case Appended():
            yield state
        case dict():
            for part in state.values():
                yield from appended_in(part)
        case list() | tuple():
            for part in state:
                yield from appended_in(part)
