"""Statistics of input filters that stay as they are while workers act by them."""

import copy

from coach_rl.core.agents import AnyAgent
from coach_rl.core.interfaces import InputFilter
from coach_rl.core.parts import walk
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
        self._newest = newest
        self._frozen = copy.deepcopy(newest)
        self.observation_space = newest.observation_space
        self.changed_keys = newest.changed_keys
        self.changes_reward = newest.changes_reward

    def parts(self) -> dict[str, object]:
        """The filter and its copy."""
        return {"newest": self._newest, "frozen": self._frozen}

    def freeze(self) -> None:
        """Use the newest statistics from now on."""
        self._frozen.load_state_dict(self._newest.state_dict())

    @property
    def frozen(self) -> InputFilter:
        """The filter with the statistics in use."""
        return self._frozen

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


class FrozenStatistics:
    """The statistics by which workers filter, of all agents that do."""

    def __init__(self) -> None:
        self._filters: dict[str, FrozenStatisticsFilter] = {}
        """The filters by the level's name, and the names of an agent in the groups around it."""

    def add(self, level: str, agent: AnyAgent) -> None:
        """Replace the filter of a level's agent, or those of a group's, by one that freezes."""
        for part in walk(agent):
            if part.is_agent and hasattr(part.value, "input_filter"):
                frozen = FrozenStatisticsFilter(part.value.input_filter)
                part.value.input_filter = frozen
                self._filters["/".join((level, *part.members))] = frozen

    def freeze(self) -> None:
        """Use the newest statistics from now on."""
        for each in self._filters.values():
            each.freeze()

    def state_dict(self) -> State:
        """The statistics in use."""
        return {name: each.frozen.state_dict() for name, each in self._filters.items()}

    def load_state_dict(self, state: State) -> None:
        """Use saved statistics from now on."""
        for name, each in self._filters.items():
            each.frozen.load_state_dict(state[name])
