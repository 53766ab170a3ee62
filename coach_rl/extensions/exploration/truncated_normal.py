"""Normal noise on the actions of a Box that stays in the Box."""

from dataclasses import field
from statistics import NormalDist

import numpy as np

from coach_rl.core.clock import Clock, ConstantSchedule, Schedule
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies.exploration_policy import (
    BoxActions,
    ScheduledPolicy,
    check_ends,
)


@parameter_class
class TruncatedNormalNoise:
    """Normal noise around each element, drawn under the condition that it stays in the Box.

    Clipped noise piles up on the bounds; truncated noise has no action that is likelier than its
    neighbours, but pushes the mean of an action near a bound inwards.
    """

    scale: Schedule = field(default_factory=lambda: ConstantSchedule(value=0.1))
    """Standard deviation, before truncation, in half-ranges of each element, 0 or more."""

    def __post_init__(self) -> None:
        check_ends(self.scale, "TruncatedNormalNoise.scale")

    def build(self, action_space: Space) -> "TruncatedNormalPolicy":
        """Build the policy for a flat, bounded Box of floats."""
        return TruncatedNormalPolicy(self, BoxActions(action_space, policy="TruncatedNormalNoise"))


class TruncatedNormalPolicy(ScheduledPolicy[BoxActions]):
    """Actions [R, A] drawn from truncated normals; an `ExplorationPolicy`."""

    def __init__(self, params: TruncatedNormalNoise, actions: BoxActions) -> None:
        super().__init__(actions, params.scale, "TruncatedNormalNoise.scale", "exploration/scale")

    def new_rows(self, num_rows: int, seed: int) -> RowNoise:
        """A uniform number for each element, for the inverse of the distribution."""
        return RowNoise(
            num_rows=num_rows,
            size=self._actions.size,
            kind="uniform",
            seed=seed,
            name="truncated_normal",
        )

    def explore(
        self,
        state: RowNoise,
        rows: IntArray,
        values: FloatArray,
        *,
        starts: BoolArray,  # noqa: ARG002 - nothing lasts
        clock: Clock,
    ) -> FloatArray:
        mean = self._actions.clipped(values)
        numbers = state.draw(rows).astype(np.float64)
        std = self._now(clock) * self._actions.half_range.astype(np.float64)
        moves = std > 0  # [A]; nothing is drawn where std is 0
        bounds = np.where(moves, std, 1.0)
        below = _cumulative((self._actions.low - mean) / bounds)
        above = _cumulative((self._actions.high - mean) / bounds)
        # Numbers are multiples of 2^-24 in [0, 1); their cells' centres are never 0 or 1.
        probability = below + (numbers + 2.0**-25) * (above - below)
        return self._actions.clipped(mean + np.where(moves, std * _quantile(probability), 0.0))


# numpy has no normal distribution.
_cumulative = np.vectorize(NormalDist().cdf, otypes=[np.float64])
_quantile = np.vectorize(NormalDist().inv_cdf, otypes=[np.float64])
