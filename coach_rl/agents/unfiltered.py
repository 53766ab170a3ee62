"""The filters of an agent that has none."""

from gymnasium import spaces

from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.saved import Saved
from coach_rl.core.spaces import Space


class UnfilteredInput(Saved):
    """Passes observations and rewards through."""

    changed_keys: frozenset[str] = frozenset()
    changes_reward = False

    def __init__(self, space: spaces.Dict) -> None:
        self.observation_space = space

    def new_rows(self, num_rows: int) -> dict[str, Array]:
        """Nothing is remembered."""
        return {}

    def observation(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        """The same."""
        return observation

    def reward(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        reward: FloatArray,
        *,
        ends: BoolArray,
        learn: bool,
    ) -> FloatArray:
        """The same."""
        return reward


class UnfilteredOutput(Saved):
    """Passes actions through."""

    def __init__(self, space: Space) -> None:
        self.agent_space = space

    def apply(self, action: Action) -> Action:
        """The same."""
        return action

    def inverse(self, action: Action) -> Action:
        """The same."""
        return action
