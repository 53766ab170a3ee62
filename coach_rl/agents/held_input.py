"""An input filter that learns its statistics while older ones are in use."""

import copy

from coach_rl.core.filters import InputFilter
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.state import State


class HeldInput(Saved):
    """Filters the observations of training by statistics that stand still until the next `hold`.

    Other processes act by them meanwhile, and what they see is what is learned from. Evaluations
    are filtered by the newest statistics, and so are rewards, which nobody acts on.

    Args:
        newest: The agent's filter, which learns the statistics.
    """

    SAVED = (SavedAttribute("_newest", inline=True),)

    def __init__(self, newest: InputFilter) -> None:
        self._newest, self._held = newest, copy.deepcopy(newest)
        self.observation_space = newest.observation_space
        self.changed_keys, self.changes_reward = newest.changed_keys, newest.changes_reward

    def hold(self, held: State | None) -> State:
        """Use these statistics from now on, None for the newest; what is held."""
        self._held.load_state_dict(self._newest.state_dict() if held is None else held)
        return self._held.state_dict()

    def new_rows(self, num_rows: int) -> dict[str, Array]:
        """Fresh memory of the filter per row, and of what is held."""
        held = {f"held/{name}": of for name, of in self._held.new_rows(num_rows).items()}
        return self._newest.new_rows(num_rows) | held

    def observation(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        """Filter by what is held where the newest statistics are still being learned."""
        newest = self._newest.observation(memory, rows, observation, starts=starts, learn=learn)
        if not learn:
            return newest
        own = {
            name.removeprefix("held/"): values
            for name, values in memory.items()
            if name.startswith("held/")
        }
        return self._held.observation(own, rows, observation, starts=starts, learn=False)

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
