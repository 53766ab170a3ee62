"""Noise on the actions of a Box: normal, with uniform actions, squashed.

`EpsilonGreedyNoise` is the exploration of hindsight agents, `SquashedGaussianPolicy` that of soft
actor-critic.
"""

from dataclasses import dataclass, field

import numpy as np

from coach_rl.core.agents import RowState
from coach_rl.core.box_ranges import ActionUnit
from coach_rl.core.clock import Clock, ConstantSchedule, Schedule
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies.exploration_policy import (
    AnyExplorationPolicy,
    BoxActions,
    ExplorationPolicyParameters,
    ScheduledPolicy,
    check_ends,
)


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


class GaussianNoisePolicy(ScheduledPolicy[BoxActions]):
    """Actions [R, A] with normal noise, clipped; an `ExplorationPolicy`."""

    def __init__(self, params: GaussianNoise, actions: BoxActions) -> None:
        super().__init__(actions, params.scale, "GaussianNoise.scale", "exploration/scale")
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
        std = self._now(clock) * self._unit
        return self._actions.clipped(values + std * state.draw(rows))


@parameter_class
class EpsilonGreedyNoise:
    """Epsilon-greedy in a Box: a uniform action with probability epsilon, else another policy's.

    Values of Plappert et al. 2018, "Multi-Goal Reinforcement Learning", appendix A, for the Fetch
    tasks; Andrychowicz et al. 2017 (hindsight experience replay) take 0.2 and a scale of 0.1.
    """

    epsilon: Schedule = field(default_factory=lambda: ConstantSchedule(value=0.3))
    """Probability of an even draw from the Box, in [0, 1]."""
    noise: ExplorationPolicyParameters = field(
        default_factory=lambda: GaussianNoise(scale=ConstantSchedule(value=0.2))
    )
    """The policy of the other decisions. Its processes continue in all of them."""

    def __post_init__(self) -> None:
        check_ends(self.epsilon, "EpsilonGreedyNoise.epsilon", high=1)

    def build(self, action_space: Space) -> "EpsilonGreedyNoisePolicy":
        """Build the policy for a flat, bounded Box of floats."""
        actions = BoxActions(action_space, policy="EpsilonGreedyNoise")
        return EpsilonGreedyNoisePolicy(self, actions, self.noise.build(action_space))


@dataclass(frozen=True, kw_only=True)
class EpsilonGreedyNoiseRows(Saved):
    """The state kept per row."""

    SAVED = ("draws", "noise")

    draws: RowNoise
    """1 + A uniform numbers a decision: whether, and the action."""
    noise: RowState
    """The other policy's."""


class EpsilonGreedyNoisePolicy(ScheduledPolicy[BoxActions]):
    """Even draws among another policy's actions [R, A]; an `ExplorationPolicy`."""

    def __init__(
        self, params: EpsilonGreedyNoise, actions: BoxActions, noise: AnyExplorationPolicy
    ) -> None:
        super().__init__(
            actions, params.epsilon, "EpsilonGreedyNoise.epsilon", "exploration/epsilon", high=1
        )
        self._noise = noise

    def new_rows(self, num_rows: int, seed: int) -> EpsilonGreedyNoiseRows:
        """Streams of our own, and the other policy's rows."""
        return EpsilonGreedyNoiseRows(
            draws=RowNoise(
                num_rows=num_rows,
                size=1 + self._actions.size,
                kind="uniform",
                seed=seed,
                name="epsilon_greedy_noise",
            ),
            # A seed of its own, or the same policy inside would draw the same numbers.
            noise=self._noise.new_rows(num_rows, integer_seed(seed, "epsilon_greedy_noise")),
        )

    def explore(
        self,
        state: EpsilonGreedyNoiseRows,
        rows: IntArray,
        values: FloatArray,
        *,
        starts: BoolArray,
        clock: Clock,
    ) -> FloatArray:
        numbers = state.draws.draw(rows)
        noisy = self._noise.explore(state.noise, rows, values, starts=starts, clock=clock)
        drawn = numbers[:, :1] < self._now(clock)
        return np.where(drawn, self._actions.even(numbers[:, 1:]), noisy)

    def metrics(self, clock: Clock) -> dict[str, float]:
        return super().metrics(clock) | self._noise.metrics(clock)


class SquashedGaussianPolicy:
    """Draws from the network's own distribution; greedy is the squashed mean.

    `values` are means and log standard deviations before squashing, [R, 2A].

    Args:
        action_space: A flat, bounded Box of floats.
        log_std_bounds: Log standard deviations are kept within.
    """

    def __init__(
        self, action_space: Space, log_std_bounds: tuple[float, float] = (-20.0, 2.0)
    ) -> None:
        self._bounds = log_std_bounds
        actions = BoxActions(action_space, policy="SquashedGaussianPolicy")
        self._low, self._high = actions.low, actions.high
        self._half_range = actions.half_range

    def new_rows(self, num_rows: int, seed: int) -> RowNoise:
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
        size = len(self._low)
        log_std = np.clip(values[:, size:], *self._bounds)
        return self._in_box(values[:, :size] + np.exp(log_std) * state.draw(rows))

    def greedy(self, values: FloatArray) -> Array:
        return self._in_box(values[:, : len(self._low)])

    def metrics(self, clock: Clock) -> dict[str, float]:  # noqa: ARG002
        """Nothing: the learner logs the entropy."""
        return {}

    def _in_box(self, unsquashed: FloatArray) -> Array:
        actions = self._low + self._half_range * (np.tanh(unsquashed) + 1)
        return np.asarray(np.minimum(actions, self._high))  # rounding may go beyond
