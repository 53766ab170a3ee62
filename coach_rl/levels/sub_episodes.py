"""Statistics of a level's sub-episodes, for the log."""

import math
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType

import numpy as np
from gymnasium.spaces import Discrete

from coach_rl.core.clock import Phase
from coach_rl.core.goals import GoalSpace, length_of
from coach_rl.core.level_parts import Counts, Judgement
from coach_rl.core.levels import LevelDescription
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import Array, BoolArray, End, FloatArray, IntArray
from coach_rl.core.state import State
from coach_rl.levels.rows import LevelRows

_ENDS = {
    "goal": End.GOAL,
    "horizon": End.HORIZON,
    "outer": End.OUTER,
    "terminated": End.TERMINATED,
    "truncated": End.TRUNCATED,
}
"""Ends of every level, by their names; parts of a level may bring others."""
NO_OTHERS: Mapping[str, End] = MappingProxyType({})
_FOLD_AT = 1_000
_DISTANCES = ("distance_at_start", "distance")
_MEANS = (*_DISTANCES, "decisions", "return")
METRICS = (
    "sub_episodes",
    *(f"{name}_share" for name in (*_ENDS, "failure", "own_end")),
    *_MEANS,
    "steps",
)
"""The names of all statistics but those of single options, and those that parts bring."""
_OF_OPTIONS = ("option_share", "option_ended_share", "option_decisions", "option_return")
"""The statistics of each option, `<name>/<option>`."""

Differences = tuple[FloatArray, FloatArray]
"""Differences between goals and the starts, and the ends, of their sub-episodes, [E, G] each."""


class SubEpisodes:
    """Sums over the sub-episodes that have ended since the last `drain`.

    Args:
        level: Whose they are. Only where it receives goals are the share that reaches them, and
            distances, among the means.
        ends: Further ends by name, which parts of the level bring.
        counts: Sums of these parts, which are saved and cleared with the level's own.
    """

    def __init__(
        self,
        level: LevelDescription,
        *,
        ends: Mapping[str, End] = NO_OTHERS,
        counts: Counts | None = None,
    ) -> None:
        space = level.goal_space
        goals = isinstance(space, GoalSpace)
        self._ends = {**_ENDS, **ends}
        self._shown = tuple(name for name in self._ends if goals or name != "goal")
        self._means = tuple(name for name in _MEANS if goals or name not in _DISTANCES)
        self._sums = dict.fromkeys(("count", *self._ends, *_MEANS, "steps"), 0.0)
        self._counts: Counts = {} if counts is None else counts
        is_numbered = isinstance(space, OptionSpace) and isinstance(space.space, Discrete)
        options = space.size if space is not None and is_numbered else 0
        self._of_options = np.zeros((options, len(_OF_OPTIONS)), np.float64)
        """[K, 4]: sub-episodes, those that ended by themselves, decisions, returns."""
        self._new: list[tuple[Array, Differences | None, IntArray, IntArray, FloatArray]] = []
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
        if self._last.maxlen and phase is not Phase.HEATUP:
            self._last.extend(((judgement.end[ended] & np.uint8(End.GOAL)) > 0).tolist())
        where, differences = answered[ended], None
        if judgement.difference is not None:
            at_end = judgement.difference.take(ended, axis=0)
            differences = rows.difference_at_start[where], at_end
        self.note_ends(
            where,
            judgement.end[ended],
            differences=differences,
            decisions=rows.decisions[where],
            steps=rows.duration[where],
            returns=rows.own_return[where],
            options=rows.goal[where].argmax(axis=1) if len(self._of_options) else None,
        )

    def note_ends(
        self,
        rows: IntArray,
        end: Array,
        *,
        differences: Differences | None,
        decisions: IntArray,
        steps: IntArray,
        returns: FloatArray,
        options: IntArray | None = None,
    ) -> None:
        """Add the sub-episodes that ended in a tick.

        Args:
            rows: Where, [E].
            end: Bits of `End`, uint8 [E], none of them 0.
            differences: From their goals to where they began, and to where they ended, [E, G]
                each; None without goals.
            decisions: How many each took, [E].
            steps: How many of the simulator each took, [E].
            returns: Their rewards added up, [E].
            options: Which option each was, [E]; None at a level without options.
        """
        if self._counted is not None:
            kept = self._counted[rows]
            end, decisions, steps, returns = end[kept], decisions[kept], steps[kept], returns[kept]
            if differences is not None:
                differences = differences[0][kept], differences[1][kept]
            options = None if options is None else options[kept]
        if options is not None:
            ended = (end & np.uint8(End.OPTION)) > 0
            each = np.stack([np.ones(len(end)), ended, decisions, returns], axis=1)
            np.add.at(self._of_options, options, each)  # in turn, row by row
        self._new.append((end, differences, decisions, steps, returns))
        if len(self._new) >= _FOLD_AT:
            self._fold()

    def drain(self) -> dict[str, float]:
        """Means over what was noted since the last call, by name; empty if nothing was."""
        self._fold()
        sums, count = self._sums, self._sums["count"]
        scalars = {}
        if count:
            scalars["sub_episodes"] = count
            scalars |= {f"{name}_share": sums[name] / count for name in self._shown}
            scalars |= {name: sums[name] / count for name in self._means}
            if sums["steps"]:
                scalars["steps"] = sums["steps"] / count
            scalars |= self._by_option(count)
        self._sums = dict.fromkeys(sums, 0.0)
        self._counts.update(dict.fromkeys(self._counts, 0.0))
        self._counted = None
        self._of_options[:] = 0.0
        return scalars

    def state_dict(self) -> State:
        self._fold()
        options = {"options": self._of_options.copy()} if len(self._of_options) else {}
        return {**self._sums, **self._counts, **options, "last": list(self._last)}

    def load_state_dict(self, state: State) -> None:
        self._sums = {name: state.get(name, 0.0) for name in self._sums}
        self._counts.update({name: state.get(name, 0.0) for name in self._counts})
        self._new = []
        if len(self._of_options):
            self._of_options[:] = state["options"]
        self._last = deque(state["last"], maxlen=self._last.maxlen)

    def _by_option(self, count: float) -> dict[str, float]:
        """The statistics of each option; of one that was never chosen, its share alone."""
        scalars: dict[str, float] = {}
        for option, (chosen, *sums) in enumerate(self._of_options.tolist()):
            means = [chosen / count, *(each / chosen for each in sums if chosen)]
            names = _OF_OPTIONS[: len(means)]
            scalars |= {f"{n}/{option}": mean for n, mean in zip(names, means, strict=True)}
        return scalars

    def _fold(self) -> None:
        """Add the new sub-episodes to the sums."""
        if not self._new:
            return
        ends, differences, decisions, steps, returns = zip(*self._new, strict=True)
        self._new, sums, end = [], self._sums, np.concatenate(ends)
        sums["count"] += len(end)
        for name, bit in self._ends.items():
            sums[name] += np.count_nonzero(end & np.uint8(bit))
        if differences[0] is not None:
            for name, parts in zip(_DISTANCES, zip(*differences, strict=True), strict=True):
                sums[name] = _added_in_turn(sums[name], length_of(np.concatenate(parts)))
            sums["steps"] += int(np.concatenate(steps).sum())  # a sub-goal takes so long
        sums["decisions"] += int(np.concatenate(decisions).sum())
        sums["return"] = _added_in_turn(sums["return"], np.concatenate(returns))


def _added_in_turn(total: float, values: FloatArray) -> float:
    """The sum, one value at a time, so that it does not depend on how often `_fold` is called."""
    return float(np.add.accumulate(np.append(total, values))[-1])
