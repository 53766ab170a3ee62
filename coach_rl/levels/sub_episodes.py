"""Statistics of a level's sub-episodes, for the log."""

import math
from collections import deque
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from coach_rl.core.clock import Phase
from coach_rl.core.level_parts import Counts, Judgement
from coach_rl.core.records import Array, BoolArray, End, FloatArray, IntArray
from coach_rl.core.state import State
from coach_rl.levels.rows import LevelRows

ENDS = {
    "horizon": End.HORIZON,
    "outer": End.OUTER,
    "terminated": End.TERMINATED,
    "truncated": End.TRUNCATED,
}
"""Ends of every level, by their names; parts of a level may bring others."""
_FOLD_AT = 1_000
DISTANCES = ("distance_at_start", "distance")
MEANS = ("decisions", "return")
METRICS = (
    "sub_episodes",
    *(f"{name}_share" for name in ("goal", *ENDS, "own_end")),
    *DISTANCES,
    *MEANS,
    "steps",
)
"""The names of all statistics but those of single options, and those that parts bring."""

Figures = dict[str, Array]
"""Figures of sub-episodes that ended, by name, [E, ...] each."""


class SubEpisodes:
    """Sums over the sub-episodes that have ended since the last `drain`.

    Args:
        ends: Further ends by name, which parts of the level bring.
        counts: Sums of these parts, which are saved and cleared with the level's own.
    """

    ends: ClassVar[Mapping[str, End]] = ENDS
    means: ClassVar[tuple[str, ...]] = MEANS

    def __init__(self, ends: Mapping[str, End], counts: Counts) -> None:
        self._ends = {**self.ends, **ends}
        self._sums = dict.fromkeys(("count", *self._ends, *self.means), 0.0)
        self._counts = counts
        self._new: list[tuple[Array, Figures]] = []
        """Not yet in the sums: adding up once in a while costs less than at every tick."""
        self._counted: BoolArray | None = None
        self._last: deque[bool] = deque(maxlen=0)
        """True for each of the last sub-episodes that reached its goal."""

    def remember(self, count: int) -> None:
        """Remember so many of the last sub-episodes from now on, for `success_rate`."""
        self._last = deque(self._last, maxlen=count)

    def forget(self) -> None:
        """Count the last sub-episodes from now on, for `success_rate`."""
        self._last.clear()

    def success_rate(self, over: int) -> float:
        """Share of the last `over` after heat-up that reached their goals; NaN before there are."""
        if len(self._last) < over:
            return math.nan
        return sum(list(self._last)[-over:]) / over

    def count_only(self, rows: BoolArray) -> None:
        """Leave out what ends from now on in other rows than these, [N]; `drain` counts all again.

        An evaluation counts the episodes that are each row's share of it.
        """
        self._counted = rows.copy()

    def note(
        self,
        rows: LevelRows,
        answered: IntArray,
        ended: IntArray,
        judgement: Judgement,
        *,
        phase: Phase,
    ) -> None:
        """Add the sub-episodes that an answer ended.

        Args:
            rows: The level's, with what is added up in them.
            answered: Rows of the answer, [R].
            ended: Places of those that ended, [E].
            judgement: Of the R rows.
            phase: The level's; the success rate leaves out those of HEATUP.
        """
        if not len(ended):
            return
        end = judgement.end[ended]
        if self._last.maxlen and phase is not Phase.HEATUP:
            self._last.extend(((end & np.uint8(End.GOAL)) > 0).tolist())
        self.note_ends(
            answered[ended], end, **self._figures(rows, answered[ended], ended, judgement)
        )

    def note_ends(self, rows: IntArray, end: Array, **figures: Array) -> None:
        """Add the sub-episodes that ended in a tick.

        Args:
            rows: Where, [E].
            end: Bits of `End`, uint8 [E], none of them 0.
            figures: What is summed of them, [E, ...] each.
        """
        if self._counted is not None:
            kept = self._counted[rows]
            end = end[kept]
            figures = {name: values[kept] for name, values in figures.items()}
        self._new.append((end, figures))
        if len(self._new) >= _FOLD_AT:
            self._fold()

    def drain(self) -> dict[str, float]:
        """Means over what was noted since the last call, by name; empty if nothing was."""
        self._fold()
        scalars = self._means(self._sums["count"]) if self._sums["count"] else {}
        self._clear()
        self._counts.update(dict.fromkeys(self._counts, 0.0))
        self._counted = None
        return scalars

    def state_dict(self) -> State:
        self._fold()
        return {**self._sums, **self._counts, "last": list(self._last)}

    def load_state_dict(self, state: State) -> None:
        self._sums = {name: state.get(name, 0.0) for name in self._sums}
        self._counts.update({name: state.get(name, 0.0) for name in self._counts})
        self._new = []
        self._last = deque(state["last"], maxlen=self._last.maxlen)

    def _figures(
        self,
        rows: LevelRows,
        where: IntArray,
        ended: IntArray,  # noqa: ARG002 - of goals
        judgement: Judgement,  # noqa: ARG002
    ) -> Figures:
        """Figures of sub-episodes that ended in rows [E], at places of an answer [E]."""
        return {"decisions": rows.decisions[where], "returns": rows.own_return[where]}

    def _means(self, count: float) -> dict[str, float]:
        """Means over so many sub-episodes."""
        shares = {f"{name}_share": self._sums[name] / count for name in self._ends}
        means = {name: self._sums[name] / count for name in self.means}
        return {"sub_episodes": count, **shares, **means}

    def _clear(self) -> None:
        """Set the sums to 0."""
        self._sums = dict.fromkeys(self._sums, 0.0)

    def _fold(self) -> None:
        """Add the new sub-episodes to the sums."""
        if not self._new:
            return
        ends, figures = zip(*self._new, strict=True)
        self._new = []
        whole = {name: np.concatenate([each[name] for each in figures]) for name in figures[0]}
        self._add(np.concatenate(ends), whole)

    def _add(self, end: Array, figures: Figures) -> None:
        """Add sub-episodes [E] to the sums."""
        sums = self._sums
        sums["count"] += len(end)
        for name, bit in self._ends.items():
            sums[name] += np.count_nonzero(end & np.uint8(bit))
        sums["decisions"] += int(figures["decisions"].sum())
        sums["return"] = added_in_turn(sums["return"], figures["returns"])


def added_in_turn(total: float, values: FloatArray) -> float:
    """The sum, one value at a time, so that it does not depend on how often `_fold` is called."""
    return float(np.add.accumulate(np.append(total, values))[-1])
