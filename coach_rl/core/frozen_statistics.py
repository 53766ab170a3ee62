"""An input filter that learns its statistics while older ones are in use."""

import copy
from typing import Any

from coach_rl.core.filters import InputFilter
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.state import State


class FrozenStatisticsFilter(Saved):
    """Filters the observations of training by statistics that stay as they are until `freeze`.

    Other processes act by them meanwhile, and learning has to see what they saw. Evaluations are
    filtered by the newest statistics, and so are rewards, on which no decision depends.

    Args:
        newest: The agent's filter, which learns the statistics.
    """

    SAVED = (SavedAttribute("_newest", inline=True),)

    def __init__(self, newest: InputFilter) -> None:
        self._newest, self._frozen = newest, copy.deepcopy(newest)
        self.observation_space = newest.observation_space
        self.changed_keys, self.changes_reward = newest.changed_keys, newest.changes_reward

    def parts(self) -> dict[str, object]:
        """The filter and its copy."""
        return {"newest": self._newest, "frozen": self._frozen}

    def freeze(self, frozen: State | None) -> State:
        """Use these statistics from now on, None for the newest; returns those in use."""
        self._frozen.load_state_dict(self._newest.state_dict() if frozen is None else frozen)
        return self._frozen.state_dict()

    def new_rows(self, num_rows: int) -> dict[str, Array]:
        """Fresh memory per row, of the filter and of its frozen copy."""
        frozen = {f"held/{name}": of for name, of in self._frozen.new_rows(num_rows).items()}
        return self._newest.new_rows(num_rows) | frozen

    def observation(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        """Filter by the frozen statistics where the newest are still being learned."""
        newest = self._newest.observation(memory, rows, observation, starts=starts, learn=learn)
        if not learn:
            return newest
        own = {
            name.removeprefix("held/"): values
            for name, values in memory.items()
            if name.startswith("held/")
        }
        return self._frozen.observation(own, rows, observation, starts=starts, learn=False)

    def reward(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        reward: FloatArray,
        *,
        ends: BoolArray,
        learn: bool,
    ) -> FloatArray:
        """Filter by the newest statistics."""
        return self._newest.reward(memory, rows, reward, ends=ends, learn=learn)


def freeze_statistics(agent: Any, frozen: State | None = None) -> State | None:
    """Filter training's observations by these statistics from now on, while others are learned.

    Args:
        agent: The agent, or a group of agents.
        frozen: What this returned before; None takes the statistics as they are now.

    Returns:
        The statistics in use, those of a group by the member's name; None if nothing filters.
    """
    if members := getattr(agent, "members", None):
        found = {
            name: freeze_statistics(each, None if frozen is None else frozen.get(name))
            for name, each in members.items()
        }
        return {name: state for name, state in found.items() if state is not None}
    current = getattr(agent, "input_filter", None)
    if current is None:
        return None
    if not isinstance(current, FrozenStatisticsFilter):
        agent.input_filter = current = FrozenStatisticsFilter(current)
    return current.freeze(frozen)
