"""Filters of rewards: descriptions whose `build` returns an `InputStage`.

Rewards are float64 [R] in a Box of shape (). Start with `RewardClippingFilter` for a filter that is
only a function, `RewardReturnScalingFilter` for one with statistics and memory per row.
"""

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive, UnitInterval
from coach_rl.core.records import Array, BoolArray, IntArray
from coach_rl.core.running_statistics import RunningStatistics
from coach_rl.core.saved import SavedAttribute
from coach_rl.core.spaces import Space
from coach_rl.filters.normalizer import Normalizer
from coach_rl.filters.stages import (
    InputStage,
    RowMemory,
    StatelessInputStage,
    box,
    box_of,
    require_limits,
)


@parameter_class
class RewardClippingFilter:
    """Rewards are limited to `low` and `high`; 0 is a bound like any other."""

    low: float | None = None
    """Smallest reward that passes; None for no limit."""
    high: float | None = None
    """Largest reward that passes; None for no limit."""

    def __post_init__(self) -> None:
        require_limits("RewardClippingFilter", self.low, self.high)

    def build(self, space: Space) -> StatelessInputStage:
        source = box_of("RewardClippingFilter", space)
        low = -np.inf if self.low is None else self.low
        high = np.inf if self.high is None else self.high
        return StatelessInputStage(
            box(np.clip(source.low, low, high), np.clip(source.high, low, high), source.dtype),
            lambda rewards: np.minimum(np.maximum(rewards, low), high),
        )


@parameter_class
class RewardNormalizationFilter:
    """Subtract the running mean of all rewards, divide by their running standard deviation, clip.

    Subtracting a mean changes which policy is best where episodes differ in length:
    `RewardReturnScalingFilter` only scales.
    """

    clip: Positive[float] | None = 5.0
    """Largest magnitude that comes out, in standard deviations; None for no limit."""
    epsilon: Positive[float] = 1e-8
    """Added to the variance."""

    def build(self, space: Space) -> Normalizer:
        return Normalizer(
            box_of("RewardNormalizationFilter", space),
            clip=self.clip,
            epsilon=self.epsilon,
            dtype=np.float64,
        )


@parameter_class
class RewardRescaleFilter:
    """Every reward times `factor`."""

    factor: float
    """Anything but 0."""

    def __post_init__(self) -> None:
        require(self.factor != 0, f"RewardRescaleFilter.factor must not be 0, got {self.factor}")

    def build(self, space: Space) -> StatelessInputStage:
        source = box_of("RewardRescaleFilter", space)
        ends = (source.low * self.factor, source.high * self.factor)
        return StatelessInputStage(
            box(np.minimum(*ends), np.maximum(*ends), source.dtype),
            lambda rewards: rewards * self.factor,
        )


@parameter_class
class RewardReturnScalingFilter:
    """Divide rewards by the running standard deviation of the discounted sum of rewards.

    The mean isn't shifted. What PPO is usually run with (Engstrom et al. 2020, "Implementation
    Matters", section 3): each row keeps `G = discount * G + reward`, forgotten when its episode
    ends; the standard deviation is taken over all G of all rows.
    """

    discount: UnitInterval = 0.99
    """Discount of the sum, in [0, 1]; usually the agent's own."""
    clip: Positive[float] | None = 10.0
    """Largest magnitude that comes out; None for no limit."""
    epsilon: Positive[float] = 1e-8
    """Added to the variance."""

    def build(self, space: Space) -> "ReturnScaling":
        return ReturnScaling(box_of("RewardReturnScalingFilter", space), parameters=self)


class ReturnScaling(InputStage):
    """Remembers each row's discounted return, and the standard deviation of all of them.

    Args:
        space: Of a reward.
        parameters: As described there.
    """

    SAVED = (SavedAttribute("_statistics", inline=True),)

    def __init__(self, space: spaces.Box, *, parameters: RewardReturnScalingFilter) -> None:
        self._limit = np.inf if parameters.clip is None else parameters.clip
        super().__init__(box(np.full((), -self._limit), np.full((), self._limit), space.dtype))
        self._discount = parameters.discount
        self._epsilon = parameters.epsilon
        self._statistics = RunningStatistics(())
        self._scale = self._statistics.inverse_std(self._epsilon)

    def new_rows(self, num_rows: int, /) -> dict[str, Array]:
        """`discounted_return` and `ended` (the next reward begins a new sum), each [num_rows]."""
        return {
            "discounted_return": np.zeros(num_rows, dtype=np.float64),
            "ended": np.ones(num_rows, dtype=np.bool_),
        }

    def advance(
        self, rewards: Array, memory: RowMemory, rows: IntArray, ends: BoolArray, /
    ) -> None:
        """Add rewards [R] to the discounted sums of their rows."""
        returns = memory["discounted_return"]
        ended = memory["ended"]
        carried = np.where(ended[rows], 0.0, returns[rows])
        carried *= self._discount
        carried += rewards
        returns[rows] = carried
        ended[rows] = ends

    def update(self, _rewards: Array, memory: RowMemory, rows: IntArray, /) -> None:
        """Update the statistics with the discounted sums of these rows."""
        self._statistics.update(memory["discounted_return"][rows])
        self._scale = self._statistics.inverse_std(self._epsilon)

    def apply(self, rewards: Array, _memory: RowMemory, _rows: IntArray, /) -> Array:
        """Rewards [R] over the standard deviation."""
        scaled = rewards * self._scale
        np.minimum(scaled, self._limit, out=scaled)
        return np.maximum(scaled, -self._limit, out=scaled)

    def note_loaded(self) -> None:
        """Compute the scale of the loaded statistics."""
        self._scale = self._statistics.inverse_std(self._epsilon)
