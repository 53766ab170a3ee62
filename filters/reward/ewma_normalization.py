"""Subtract an exponentially weighted moving average from rewards."""

from typing import Annotated

import numpy as np
from annotated_types import Interval
from gymnasium import spaces

from coach_rl.core.errors import NonFiniteError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array, IntArray
from coach_rl.core.spaces import Space
from coach_rl.filters.space_requirements import box, box_of
from coach_rl.filters.stages import InputStage, RowMemory


@parameter_class
class RewardEwmaNormalizationFilter:
    """Subtract the exponentially weighted average of the rewards so far, this one included.

    Not divided by a standard deviation. The average is the weighted mean proper: the weights of the
    rewards seen are scaled to sum to 1, so the first rewards aren't held against 0.
    """

    alpha: Annotated[float, Interval(gt=0, le=1)] = 0.01
    """Weight of a new reward, in (0, 1]."""

    def build(self, space: Space) -> "EwmaSubtraction":
        """Build the filter for a reward."""
        return EwmaSubtraction(box_of("RewardEwmaNormalizationFilter", space), alpha=self.alpha)


class EwmaSubtraction(InputStage):
    """Keeps the average; rewards of one call count as if they came one by one, in their order.

    Args:
        space: Of a reward.
        alpha: Weight of a new reward.
    """

    SAVED = ("_weighted_sum", "_weight")

    def __init__(self, space: spaces.Box, *, alpha: float) -> None:
        super().__init__(box(np.full((), -np.inf), np.full((), np.inf), space.dtype))
        self._alpha = alpha
        self._weighted_sum = 0.0  # of rewards, the latest with weight alpha
        self._weight = 0.0  # of all rewards together, grows towards 1

    @property
    def average(self) -> float:
        """The weighted average so far, 0 before the first reward."""
        return self._weighted_sum / self._weight if self._weight else 0.0

    def update(self, rewards: Array, _memory: RowMemory, _rows: IntArray, /) -> None:
        """Take in rewards [R].

        Raises:
            NonFiniteError: A reward is NaN or infinite; the average stays as it was.
        """
        if not np.isfinite(rewards).all():
            raise NonFiniteError(
                f"RewardEwmaNormalizationFilter needs finite rewards, got {rewards}"
            )
        keep = (1.0 - self._alpha) ** np.arange(len(rewards), -1, -1.0)  # [R + 1], the last is 1
        self._weighted_sum = float(
            keep[0] * self._weighted_sum + self._alpha * (keep[1:] * rewards).sum()
        )
        self._weight = float(keep[0] * self._weight + self._alpha * keep[1:].sum())

    def apply(self, rewards: Array, _memory: RowMemory, _rows: IntArray, /) -> Array:
        """Rewards [R] less the average."""
        return rewards - self.average
