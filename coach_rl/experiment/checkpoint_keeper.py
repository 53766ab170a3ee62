"""Checkpoints that a run writes and keeps: best, last, and periodic ones on request."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from coach_rl.core.errors import CheckpointError
from coach_rl.core.state import State
from coach_rl.experiment.checkpoint import (
    BEST,
    LAST,
    POINTERS,
    Checkpoint,
    free_path,
    list_checkpoints,
    point,
    pointed,
    read_notes,
    remove_checkpoint,
    write_checkpoint,
)
from coach_rl.experiment.run_folder import RunFolder, event_file_lengths, log_lengths
from coach_rl.experiment.segments import NOTHING_STORED
from coach_rl.experiment.strict_json import Json

Reason = Literal["best", "periodic", "last"]
"""Reason for a checkpoint; only periodic ones are kept once they are neither best nor last."""


@dataclass(frozen=True)
class Best:
    """The best evaluation so far."""

    reward: float
    """Its mean reward."""
    environment_steps: int
    """Environment steps at which it was taken."""
    checkpoint: str
    """The name of the checkpoint taken then."""


def require_same_seed(checkpoint: Checkpoint, seed: int) -> None:
    """Raise `CheckpointError` where a checkpoint is of a run with another seed than the manifest's.

    Evaluations and rows of later runs draw from the seed, so nothing else would tell. Checkpoints
    of earlier versions don't know theirs.
    """
    taken_with = checkpoint.notes.get("seed", seed)
    if taken_with != seed:
        raise CheckpointError(
            f"the manifest says seed {seed}, but {checkpoint.path} was taken with seed "
            f"{taken_with}; the manifest has been changed or damaged: put its seed back, or start "
            "a new run"
        )


AT_MOST_LOST_SECONDS = 600.0
"""Longest time without a checkpoint: what a killed process can lose."""


class CheckpointKeeper:
    """Writes a run's checkpoints, remembers its best evaluation, removes what is no longer wanted.

    Args:
        folder: The run's folder.
        state: What to save: the graph manager's `state_dict`.
        period_seconds: Seconds between periodic checkpoints, which stay; None for none of them.
        seed: The run's, kept beside the state for `require_same_seed`.
        memories: Whether checkpoints hold replay memories.
    """

    def __init__(
        self,
        folder: RunFolder,
        state: Callable[[], State],
        *,
        period_seconds: float | None,
        seed: int = 0,
        memories: bool = True,
    ) -> None:
        self._folder = folder
        self._state = state
        self._period_seconds, self._seed = period_seconds, seed
        self._last_save = self._last_periodic = time.monotonic()
        self._memories, self._stored = memories, NOTHING_STORED
        self.best: Best | None = None

    def is_best(self, reward: float) -> bool:
        """Return whether an evaluation beats every earlier one; an equal one does not."""
        return not math.isnan(reward) and (self.best is None or reward > self.best.reward)

    def due(self) -> Reason | None:
        """Return the reason for a checkpoint besides those of evaluations; None if none is due."""
        now = time.monotonic()
        if self._period_seconds is not None and now - self._last_periodic >= self._period_seconds:
            return "periodic"
        return "last" if now - self._last_save >= AT_MOST_LOST_SECONDS else None

    def save(self, reason: Reason, environment_steps: int, reward: float | None = None) -> None:
        """Write a checkpoint and let `last` (and `best`, where it is) point to it.

        Args:
            reason: Why it is written.
            environment_steps: Where the run stands.
            reward: Mean reward of the evaluation that is now best; only with the reason "best".

        Raises:
            CheckpointError: It cannot be written.
        """
        checkpoints = self._folder.checkpoints
        path = free_path(checkpoints, environment_steps)
        if reason == "best":
            assert reward is not None
            self.best = Best(reward, environment_steps, path.name)
        self._stored = write_checkpoint(
            path,
            self._state(),
            self._notes(reason),
            earlier=self._stored,
            memories=self._memories,
        )
        if reason == "best":
            point(checkpoints, BEST, path.name)
        point(checkpoints, LAST, path.name)
        self._last_save = time.monotonic()
        if reason == "periodic":
            self._last_periodic = self._last_save
        self._remove_unwanted()

    def restore(self, checkpoint: Checkpoint | None) -> None:
        """Go on from a checkpoint: what came after it goes, and best is what it was then.

        Args:
            checkpoint: Where to continue; None for the very beginning of a run without checkpoints.
        """
        if checkpoint is None:
            return
        checkpoints = self._folder.checkpoints
        kept = list_checkpoints(checkpoints)
        kept = kept[: kept.index(checkpoint.path) + 1]
        self._stored = checkpoint.stored
        best = checkpoint.notes["best"]
        self.best = None if best is None else Best(**best)
        known = {path.name for path in kept}
        point(checkpoints, LAST, checkpoint.path.name)
        point(
            checkpoints, BEST, best["checkpoint"] if best and best["checkpoint"] in known else None
        )
        for path in list_checkpoints(checkpoints):
            if path not in kept:
                remove_checkpoint(path)

    def _notes(self, reason: Reason) -> Json:
        return {
            "reason": reason,
            "best": None if self.best is None else vars(self.best),
            "seed": self._seed,
            "logs": log_lengths(self._folder.path),
            "event_files": event_file_lengths(self._folder.path),
        }

    def _remove_unwanted(self) -> None:
        checkpoints = self._folder.checkpoints
        wanted = {pointed(checkpoints, pointer) for pointer in POINTERS}
        for path in list_checkpoints(checkpoints):
            if path.name not in wanted and read_notes(path)["reason"] != "periodic":
                remove_checkpoint(path)
