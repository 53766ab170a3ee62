"""Metrics of losses over many gradient steps, and the diagnosis of values that are not finite."""

import math

import numpy as np
import torch
from torch import Tensor

from coach_rl.architectures.gradient_step import JUDGED
from coach_rl.core.records import BoolArray, FloatArray
from coach_rl.core.state import State

Names = tuple[str, ...]
FOLD_AT = 10_000
"""Steps whose numbers are kept apart at most, for the memory they take."""


class StepMetrics:
    """Numbers of gradient steps, left on the device until they are read.

    They are kept step by step, so that the first one that is not finite can be reported with its
    step; adding them up when read costs less than at every step, and gives the same sums.

    Args:
        skips_unsound: Whether steps that were not sound are left out of the means, and counted.
    """

    def __init__(self, *, skips_unsound: bool = False) -> None:
        self._skips_unsound = skips_unsound
        self._skipped = 0
        """Steps left out since the last `drain`."""
        self._in_a_row: dict[Names, int] = {}
        """Steps left out since the last sound one, by the names of their numbers."""
        self.steps = 0
        """Gradient steps ever taken; set when an engine is restored."""
        self._new: list[tuple[Names, Tensor]] = []
        """Numbers of the last steps, not yet in the sums."""
        self._totals: dict[Names, FloatArray] = {}
        self._counts: dict[Names, int] = {}
        self._faults: dict[str, tuple[int, float]] = {}

    def add(self, names: Names, values: Tensor) -> None:
        """Record a step's numbers [M], which must not be written to any more."""
        self.steps += 1
        self._new.append((names, values))
        if len(self._new) >= FOLD_AT:
            self._fold()

    @property
    def skipped_in_a_row(self) -> int:
        """Steps left out since the last sound one; where there are several kinds of steps, most."""
        return max(self._in_a_row.values(), default=0)

    def faults(self) -> dict[str, tuple[int, float]]:
        """Each metric that was not finite since the last `drain`, its first step and its value.

        In the order in which they were added; waits for the device.
        """
        self._fold()
        return dict(sorted(self._faults.items(), key=lambda item: item[1][0]))

    def drain(self) -> dict[str, float]:
        """Means since the last call; a metric counts the steps it was part of.

        Steps that were skipped are counted as `skipped_updates`, where there were any.
        """
        self._fold()
        totals: dict[str, float] = {}
        counts: dict[str, int] = {}
        for names, values in self._totals.items():
            for name, total in zip(names, values.tolist(), strict=True):
                if not name.startswith(JUDGED):
                    totals[name] = totals.get(name, 0.0) + total
                    counts[name] = counts.get(name, 0) + self._counts[names]
        means = {name: total / (counts[name] or math.nan) for name, total in totals.items()}
        if self._skipped:
            means["skipped_updates"] = float(self._skipped)
        self._skipped = 0
        self._totals.clear()
        self._counts.clear()
        self._faults.clear()
        return means

    def state_dict(self) -> State:
        self._fold()
        return {
            "names": [list(names) for names in self._totals],
            "totals": [torch.from_numpy(values.copy()) for values in self._totals.values()],
            "counts": list(self._counts.values()),
            "skipped": self._skipped,
            "in_a_row": [self._in_a_row.get(names, 0) for names in self._totals],
        }

    def load_state_dict(self, state: State) -> None:
        keys = [tuple(names) for names in state["names"]]
        totals = [values.cpu().numpy().copy() for values in state["totals"]]
        self._new = []
        self._faults = {}
        self._totals = dict(zip(keys, totals, strict=True))
        self._counts = dict(zip(keys, state["counts"], strict=True))
        self._skipped = state["skipped"]
        self._in_a_row = dict(zip(keys, state["in_a_row"], strict=True))

    def _fold(self) -> None:
        """Add the new steps to the sums, each metric one by one in its order."""
        groups: dict[Names, tuple[list[int], list[Tensor]]] = {}
        for step, (names, values) in enumerate(self._new, start=self.steps - len(self._new) + 1):
            steps, tensors = groups.setdefault(names, ([], []))
            steps.append(step)
            tensors.append(values)
        self._new = []
        for names, (steps, tensors) in groups.items():
            numbers: FloatArray = torch.stack(tensors).cpu().numpy()
            if not np.isfinite(numbers).all():
                self._note_faults(names, steps, numbers)
            if self._skips_unsound:
                numbers = numbers[self._sound(names, numbers)]
            count = len(numbers)
            if not count and names not in self._totals:
                numbers = np.zeros((1, len(names)), np.float32)
            if names in self._totals:
                numbers = np.concatenate([self._totals[names][None], numbers])  # [1 + S, M]
            with np.errstate(all="ignore"):  # NaN and infinity are noted already
                self._totals[names] = np.add.accumulate(numbers, axis=0)[-1]
            self._counts[names] = self._counts.get(names, 0) + count

    def _sound(self, names: Names, numbers: FloatArray) -> BoolArray:
        """[S] which steps were sound; counts the others."""
        sound = is_sound(names, numbers)
        self._skipped += int((~sound).sum())
        last = np.flatnonzero(sound)
        since = (
            len(sound) - 1 - last[-1] if len(last) else self._in_a_row.get(names, 0) + len(sound)
        )
        self._in_a_row[names] = int(since)
        return sound

    def _note_faults(self, names: Names, steps: list[int], numbers: FloatArray) -> None:
        bad = ~np.isfinite(numbers)  # [S, M]
        for metric in np.flatnonzero(bad.any(axis=0)):
            first = int(bad[:, metric].argmax())
            fault = steps[first], float(numbers[first, metric])
            known = self._faults.get(names[metric])
            if known is None or fault[0] < known[0]:
                self._faults[names[metric]] = fault


def is_sound(names: Names, numbers: FloatArray) -> BoolArray:
    """Return which steps had only finite losses, gradients and parameters.

    Args:
        names: Names of their numbers.
        numbers: The numbers, [..., M].
    """
    judged = [column for column, name in enumerate(names) if name.startswith(JUDGED)]
    return np.asarray(np.isfinite(numbers[..., judged]).all(axis=-1))
