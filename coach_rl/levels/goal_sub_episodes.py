"""Figures of sub-episodes with goals or options, for the logs."""

from collections.abc import Mapping

import numpy as np
from gymnasium.spaces import Discrete

from coach_rl.core.goals import GoalSpace, length_of
from coach_rl.core.level_parts import Counts, Judgement
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import Array, End, IntArray
from coach_rl.core.state import State
from coach_rl.levels.rows import LevelRows
from coach_rl.levels.sub_episodes import DISTANCES, ENDS, MEANS, Figures, SubEpisodes, added_in_turn

_OF_OPTIONS = ("option_share", "option_ended_share", "option_decisions", "option_return")
"""The statistics of each option, `<name>/<option>`."""


class GoalSubEpisodes(SubEpisodes):
    """The same under goals, with distances and simulator steps; a sub-goal takes so long.

    Args:
        ends: Further ends by name, which parts of the level bring.
        counts: Sums of these parts, which are saved and cleared with the level's own.
    """

    ends = {"goal": End.GOAL, **ENDS}  # noqa: RUF012
    means = (*DISTANCES, *MEANS, "steps")

    def _figures(
        self, rows: LevelRows, where: IntArray, ended: IntArray, judgement: Judgement
    ) -> Figures:
        return {
            **super()._figures(rows, where, ended, judgement),
            "distance_at_start": rows.difference_at_start[where],
            "distance": judgement.difference.take(ended, axis=0),
            "steps": rows.duration[where],
        }

    def _add(self, end: Array, figures: Figures) -> None:
        super()._add(end, figures)
        for name in DISTANCES:
            self._sums[name] = added_in_turn(self._sums[name], length_of(figures[name]))
        self._sums["steps"] += int(figures["steps"].sum())


class OptionSubEpisodes(SubEpisodes):
    """The same under options that are numbered, with the figures of each.

    Args:
        ends: Further ends by name, which parts of the level bring.
        counts: Sums of these parts, which are saved and cleared with the level's own.
        options: K.
    """

    def __init__(self, ends: Mapping[str, End], counts: Counts, *, options: int) -> None:
        super().__init__(ends, counts)
        self._of_options = np.zeros((options, len(_OF_OPTIONS)), np.float64)
        """[K, 4]: sub-episodes, those that ended by themselves, decisions, returns."""

    def state_dict(self) -> State:
        return {**super().state_dict(), "options": self._of_options.copy()}

    def load_state_dict(self, state: State) -> None:
        super().load_state_dict(state)
        self._of_options[:] = state["options"]

    def _figures(
        self, rows: LevelRows, where: IntArray, ended: IntArray, judgement: Judgement
    ) -> Figures:
        figures = super()._figures(rows, where, ended, judgement)
        return {**figures, "options": rows.goal[where].argmax(axis=1)}

    def _add(self, end: Array, figures: Figures) -> None:
        super()._add(end, figures)
        ended = (end & np.uint8(End.OPTION)) > 0
        columns = [np.ones(len(end)), ended, figures["decisions"], figures["returns"]]
        # In turn, row by row: the sums don't depend on how often they are folded.
        np.add.at(self._of_options, figures["options"], np.stack(columns, axis=1))

    def _means(self, count: float) -> dict[str, float]:
        """Means, and those of each option; of one that was never chosen, its share alone."""
        scalars = super()._means(count)
        for option, (chosen, *sums) in enumerate(self._of_options.tolist()):
            means = [chosen / count, *(each / chosen for each in sums if chosen)]
            names = _OF_OPTIONS[: len(means)]
            scalars |= {f"{n}/{option}": mean for n, mean in zip(names, means, strict=True)}
        return scalars

    def _clear(self) -> None:
        super()._clear()
        self._of_options[:] = 0.0


def sub_episodes_of(received: object, ends: Mapping[str, End], counts: Counts) -> SubEpisodes:
    """The statistics of the sub-episodes of a level.

    Args:
        received: The space of what it receives.
        ends: Further ends by name, which parts of the level bring.
        counts: Sums of these parts, which are saved and cleared with the level's own.
    """
    match received:
        case GoalSpace():
            return GoalSubEpisodes(ends, counts)
        case OptionSpace(space=Discrete()):
            return OptionSubEpisodes(ends, counts, options=received.size)
    return SubEpisodes(ends, counts)
