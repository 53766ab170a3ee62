"""The flat space of choices and numbers."""

from functools import cached_property

import numpy as np
from gymnasium import spaces

from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.random_actions import actions_from_uniform, uniform_size
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.core.spaces import PolicySpace
from coach_rl.extensions.mixed_actions.distribution import Mixed
from coach_rl.extensions.mixed_actions.sampling import MixedSampler


class MixedSpace(PolicySpace, spaces.Tuple):  # type: ignore[type-arg] # generic from Gymnasium 1.4
    """Choices and numbers in one array of floats per action, [R, K + G].

    Args:
        choices: The K choices, flat and counted from 0.
        numbers: The G numbers, a flat Box.
        groups: Sizes of groups of the numbers, each with the choice and the action that it is an
            argument of; None: it counts always.
    """

    def __init__(
        self,
        choices: spaces.MultiDiscrete,
        numbers: spaces.Box,
        groups: tuple[tuple[int, tuple[int, int] | None], ...],
    ) -> None:
        super().__init__((choices, numbers))
        self._shape = (len(choices.nvec) + numbers.shape[0],)
        self.dtype = np.dtype(np.float32)
        self.choices = choices
        self.numbers = numbers
        self.groups = groups

    @property
    def uniform_size(self) -> int:
        return uniform_size(self.choices) + uniform_size(self.numbers)

    def from_uniform(self, uniform: FloatArray, allowed: BoolArray | None) -> Array:
        count = len(self.choices.nvec)
        choice = actions_from_uniform(self.choices, uniform[:, :count], allowed)
        numbers = actions_from_uniform(self.numbers, uniform[:, count:])
        assert not isinstance(choice, dict), "choices are one array"
        assert not isinstance(numbers, dict), "numbers are one array"
        return np.concatenate([choice, numbers], axis=1, dtype=np.float32)

    @cached_property
    def distribution(self) -> Mixed:
        return Mixed(choice_sizes(self.choices), self.groups)

    @cached_property
    def sampler(self) -> MixedSampler:
        return MixedSampler(choice_sizes(self.choices), self.groups)
