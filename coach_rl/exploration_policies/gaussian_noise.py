"""Independent normal noise around the actions of a Box: clipped to it, or truncated by it."""

from collections.abc import Callable
from dataclasses import field
from statistics import NormalDist

import numpy as np

from coach_rl.core.clock import Clock
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.schedules import ConstantSchedule, Schedule
from coach_rl.core.spaces import ActionUnit, Space
from coach_rl.exploration_policies.action_spaces import BoxActions
from coach_rl.exploration_policies.scheduled import check_ends, scheduled


@parameter_class
class GaussianNoise:
    """Normal noise added to each element; what leaves the Box is clipped to its bounds."""

    scale: Schedule = field(default_factory=lambda: ConstantSchedule(value=0.1))
    """Standard deviation in the `unit`, 0 or more; 0.1 is that of TD3 (Fujimoto et al. 2018,
    section 6.1)."""
    unit: ActionUnit = "half_range"
    """half_range: half of each element's range. raw: the Box's own units, the same std for
    all elements."""

    def __post_init__(self) -> None:
        check_ends(self.scale, "GaussianNoise.scale")

    def build(self, action_space: Space) -> "GaussianNoisePolicy":
        """Build the policy for a flat, bounded Box of floats."""
        return GaussianNoisePolicy(self, BoxActions(action_space, policy="GaussianNoise"))


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


class GaussianNoisePolicy:
    """Actions [R, A] with normal noise, clipped; an `ExplorationPolicy`."""

    def __init__(self, params: GaussianNoise, actions: BoxActions) -> None:
        self._params = params
        self._actions = actions
        raw = np.ones_like(actions.half_range)
        self._unit: FloatArray = raw if params.unit == "raw" else actions.half_range  # [A]

    def new_rows(self, num_rows: int, seed: int) -> RowNoise:
        """A standard normal number for each element."""
        size = self._actions.size
        return RowNoise(num_rows=num_rows, size=size, kind="normal", seed=seed, name="gaussian")

    def explore(
        self,
        state: RowNoise,
        rows: IntArray,
        values: FloatArray,
        *,
        starts: BoolArray,  # noqa: ARG002 - nothing lasts
        clock: Clock,
    ) -> FloatArray:
        """Actions [R, A]."""
        std = self._scale(clock) * self._unit
        return self._actions.clipped(values + std * state.draw(rows))

    def greedy(self, values: FloatArray) -> FloatArray:
        """The actions without noise, clipped, [R, A]."""
        return self._actions.greedy(values)

    def metrics(self, clock: Clock) -> dict[str, float]:
        """The scale."""
        return {"exploration/scale": self._scale(clock)}

    def _scale(self, clock: Clock) -> float:
        return scheduled(self._params.scale, clock, "GaussianNoise.scale")


class TruncatedNormalPolicy:
    """Actions [R, A] drawn from truncated normals; an `ExplorationPolicy`."""

    def __init__(self, params: TruncatedNormalNoise, actions: BoxActions) -> None:
        self._params = params
        self._actions = actions

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
        """Actions [R, A]."""
        mean = self._actions.clipped(values)
        numbers = state.draw(rows).astype(np.float64)
        std = self._scale(clock) * self._actions.half_range.astype(np.float64)
        moves = std > 0  # [A]; elsewhere there is nothing to draw from
        bounds = np.where(moves, std, 1.0)
        below = _cumulative((self._actions.low - mean) / bounds)
        above = _cumulative((self._actions.high - mean) / bounds)
        # Numbers are multiples of 2^-24 in [0, 1); their cells' centres are never 0 or 1.
        probability = below + (numbers + 2.0**-25) * (above - below)
        return self._actions.clipped(mean + np.where(moves, std * _quantile(probability), 0.0))

    def greedy(self, values: FloatArray) -> FloatArray:
        """The actions without noise, clipped, [R, A]."""
        return self._actions.greedy(values)

    def metrics(self, clock: Clock) -> dict[str, float]:
        """The scale."""
        return {"exploration/scale": self._scale(clock)}

    def _scale(self, clock: Clock) -> float:
        return scheduled(self._params.scale, clock, "TruncatedNormalNoise.scale")


def _elementwise(function: Callable[[float], float], values: Array) -> FloatArray:
    """The function of every number, float64: numpy has no normal distribution."""
    flat = [function(value) for value in values.ravel().tolist()]
    return np.array(flat, np.float64).reshape(values.shape)


def _cumulative(values: FloatArray) -> FloatArray:
    return _elementwise(NormalDist().cdf, values)


def _quantile(probabilities: FloatArray) -> FloatArray:
    return _elementwise(NormalDist().inv_cdf, probabilities)
