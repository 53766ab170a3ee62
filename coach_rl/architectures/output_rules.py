"""Rules that change a network's outputs by the observation, in learning and in acting alike."""

from collections.abc import Callable
from typing import Protocol

from torch import Tensor

from coach_rl.core.records import FloatArray, Observation

Forward = Callable[[Observation], FloatArray]
"""Outputs [R, P] of numpy observations [R, ...] each."""


class OutputRule(Protocol):
    """A rule for outputs that depends on the observation, such as which actions it allows."""

    def __call__(self, outputs: Tensor, observation: dict[str, Tensor], /) -> Tensor:
        """The outputs [B, P] for observations [B, ...] each, by a network's outputs [B, P]."""
        ...

    def acting(self, forward: Forward, /) -> Forward:
        """The same in numpy: a function whose outputs follow the rule; it may write to others."""
        ...
