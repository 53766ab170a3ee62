"""Running statistics of several processes, averaged as gradients are."""

from collections.abc import Iterator

import numpy as np

from coach_rl.core.parts import walk
from coach_rl.core.running_statistics import RunningStatistics
from coach_rl.extensions.parallel.ranks import Numbers


class SharedStatistics:
    """The running statistics that an agent and its parts hold.

    A merge leaves mean and variance of the rows of all ranks, and the count of one of them: so the
    rows that come later, of which each rank has its own, count as much as those before.

    Args:
        agent: The agent.
    """

    def __init__(self, agent: object) -> None:
        self._agent = agent
        self._parts = [part.value for part in walk(agent)]
        self._all = [each for part in self._parts for each in _statistics_of(part)]

    def numbers(self) -> Numbers:
        """Count, mean [D] and variance [D] of each, one after the other, [K]."""
        own = [np.r_[each.count, each.mean.ravel(), each.variance.ravel()] for each in self._all]
        return np.concatenate([np.zeros(0), *own])

    def merge(self, rows: Numbers) -> None:
        """Merge the numbers of every rank, [ranks, K]; the result is the same in each."""
        for each in self._all:
            shape = each.mean.shape
            size = each.mean.size
            own, rows = np.split(rows, [1 + 2 * size], axis=1)
            counts, means, variances = np.split(own, [1, 1 + size], axis=1)
            if not counts.any():
                continue
            weights = counts / counts.sum()
            mean = (weights * means).sum(axis=0)
            variance = (weights * (variances + (means - mean) ** 2)).sum(axis=0)
            count = round(counts.mean())
            names = ("count", "mean", "squared_deviations")
            state = count, mean.reshape(shape), (variance * count).reshape(shape)
            each.load_state_dict(dict(zip(names, state, strict=True)))
        for part in self._parts:
            if part is not self._agent and hasattr(part, "note_loaded"):
                part.note_loaded()  # what it derives from them


def _statistics_of(part: object) -> Iterator[RunningStatistics]:
    """The running statistics among the attributes of an object, also in a dict."""
    for value in getattr(part, "__dict__", {}).values():
        for each in value.values() if isinstance(value, dict) else (value,):
            if isinstance(each, RunningStatistics):
                yield each
