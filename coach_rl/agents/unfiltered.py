"""The filters of an agent that has none."""

from gymnasium import spaces

from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.spaces import Space
from coach_rl.core.state import State


class UnfilteredInput:
    """Passes observations and rewards through."""

    def __init__(self, space: spaces.Dict) -> None:
        self.observation_space = space

    def new_rows(self, num_rows: int) -> dict[str, Array]:  # noqa: ARG002 (protocol)
        """Nothing is remembered."""
        return {}

    def observation(
        self,
        memory: dict[str, Array],  # noqa: ARG002 (protocol)
        rows: IntArray,  # noqa: ARG002 (protocol)
        observation: Observation,
        *,
        starts: BoolArray,  # noqa: ARG002 (protocol)
        learn: bool,  # noqa: ARG002 (protocol)
    ) -> Observation:
        """The same."""
        return observation

    def reward(
        self,
        memory: dict[str, Array],  # noqa: ARG002 (protocol)
        rows: IntArray,  # noqa: ARG002 (protocol)
        reward: FloatArray,
        *,
        ends: BoolArray,  # noqa: ARG002 (protocol)
        learn: bool,  # noqa: ARG002 (protocol)
    ) -> FloatArray:
        """The same."""
        return reward

    def state_dict(self) -> State:
        """Nothing."""
        return {}

    def load_state_dict(self, state: State) -> None:
        """Nothing to take over."""


class UnfilteredOutput:
    """Passes actions through."""

    def __init__(self, space: Space) -> None:
        self.agent_space = space

    def apply(self, action: Action) -> Action:
        """The same."""
        return action

    def inverse(self, action: Action) -> Action:
        """The same."""
        return action

    def state_dict(self) -> State:
        """Nothing."""
        return {}

    def load_state_dict(self, state: State) -> None:
        """Nothing to take over."""
