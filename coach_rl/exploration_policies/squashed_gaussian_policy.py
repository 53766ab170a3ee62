"""Sampling from a squashed Gaussian policy, as soft actor-critic does."""

from dataclasses import dataclass

import numpy as np

from coach_rl.core.clock import Clock
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies.action_spaces import BoxActions


@dataclass(frozen=True, kw_only=True)
class SquashedGaussianSampling:
    """Draw from the network's own distribution; greedy is the squashed mean."""

    log_std_bounds: tuple[float, float] = (-20.0, 2.0)
    """Log standard deviations are kept within."""

    def build(self, action_space: Space) -> "SquashedGaussianPolicy":
        """Build the policy for a flat, bounded Box of floats."""
        actions = BoxActions(action_space, policy="SquashedGaussianSampling")
        return SquashedGaussianPolicy(self, actions)


class SquashedGaussianPolicy:
    """`values` are means and log standard deviations before squashing, [R, 2A].

    Args:
        params: Its parameters.
        actions: The actions of the Box.
    """

    def __init__(self, params: SquashedGaussianSampling, actions: BoxActions) -> None:
        self._bounds = params.log_std_bounds
        self._low, self._high = actions.low, actions.high
        self._half_range = actions.half_range

    def new_rows(self, num_rows: int, seed: int) -> RowNoise:
        """A stream of standard normal numbers per row."""
        size = len(self._low)
        return RowNoise(num_rows=num_rows, size=size, kind="normal", seed=seed, name="policy")

    def explore(
        self,
        state: RowNoise,
        rows: IntArray,
        values: FloatArray,
        *,
        starts: BoolArray,  # noqa: ARG002 (each draw stands alone)
        clock: Clock,  # noqa: ARG002
    ) -> Array:
        """Sampled actions [R, A]."""
        size = len(self._low)
        log_std = np.clip(values[:, size:], *self._bounds)
        return self._in_box(values[:, :size] + np.exp(log_std) * state.draw(rows))

    def greedy(self, values: FloatArray) -> Array:
        """The squashed means [R, A]."""
        return self._in_box(values[:, : len(self._low)])

    def metrics(self, clock: Clock) -> dict[str, float]:  # noqa: ARG002
        """Nothing: the learner logs the entropy."""
        return {}

    def _in_box(self, unsquashed: FloatArray) -> Array:
        actions = self._low + self._half_range * (np.tanh(unsquashed) + 1)
        return np.asarray(np.minimum(actions, self._high))  # rounding may go beyond
