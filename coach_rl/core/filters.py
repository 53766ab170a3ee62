"""Filters between an agent and its level: of observations, rewards and actions."""

from typing import Protocol

from gymnasium import spaces

from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.spaces import Space
from coach_rl.core.state import Stateful


class InputFilter(Stateful, Protocol):
    """An agent's filter of responses: observations and rewards pass it first."""

    @property
    def observation_space(self) -> spaces.Dict:
        """The space of the observations that `observation` returns."""
        ...

    @property
    def changed_keys(self) -> frozenset[str]:
        """Observation keys whose values the filter may change."""
        ...

    @property
    def changes_reward(self) -> bool:
        """True if rewards may be changed."""
        ...

    def new_rows(self, num_rows: int) -> dict[str, Array]:
        """Fresh memory of the filters that remember something per row, e.g. frame stacks.

        Flat names, each array [num_rows, ...]; the caller owns and saves it.
        """
        ...

    def observation(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        """Filter the keys that are given.

        Args:
            memory: What `new_rows` made; the given rows are advanced in place.
            rows: [R].
            observation: [R, ...] each, all keys or some.
            starts: [R] the real episode begins with this observation: forget what the row
                remembers.
            learn: Whether statistics (running means and the like) take these observations in. False
                in TEST.

        Returns:
            New arrays, [R, ...] each; the input is never written to.
        """
        ...

    def reward(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        reward: FloatArray,
        *,
        ends: BoolArray,
        learn: bool,
    ) -> FloatArray:
        """Filter rewards [R]; `ends` [R] marks rewards that end an episode."""
        ...


class OutputFilter(Stateful, Protocol):
    """An agent's filter of actions: they pass it before the environment sees them."""

    @property
    def agent_space(self) -> Space:
        """The action space the agent acts in."""
        ...

    def apply(self, action: Action) -> Action:
        """Map from the agent's space to the environment's, [R, ...]."""
        ...

    def inverse(self, action: Action) -> Action:
        """Map from the environment's space to the agent's; SpaceError if there is no inverse."""
        ...


class InputFilterParameters(Protocol):
    """A frozen description of an InputFilter."""

    def build(self, space: spaces.Dict) -> InputFilter:
        """The filter for an environment that shows `space`; SpaceError when it doesn't fit."""
        ...


class OutputFilterParameters(Protocol):
    """A frozen description of an OutputFilter."""

    def build(self, space: Space) -> OutputFilter:
        """The filter for an environment that takes `space`; SpaceError when it doesn't fit."""
        ...
