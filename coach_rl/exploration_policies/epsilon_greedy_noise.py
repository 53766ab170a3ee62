"""Now and then any action of a Box, else one with noise: how hindsight agents explore."""

from dataclasses import dataclass, field

import numpy as np

from coach_rl.core.agents import RowState
from coach_rl.core.clock import Clock
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved
from coach_rl.core.schedules import ConstantSchedule, Schedule
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies.action_spaces import BoxActions
from coach_rl.exploration_policies.exploration_policy import (
    AnyExplorationPolicy,
    ExplorationPolicyParameters,
)
from coach_rl.exploration_policies.gaussian_noise import GaussianNoise
from coach_rl.exploration_policies.scheduled import check_ends, scheduled


def _fetch_noise() -> ExplorationPolicyParameters:
    return GaussianNoise(scale=ConstantSchedule(value=0.2))


@parameter_class
class EpsilonGreedyNoise:
    """Epsilon-greedy in a Box: a uniform action with probability epsilon, else another policy's.

    Values of Plappert et al. 2018, "Multi-Goal Reinforcement Learning", appendix A, for the Fetch
    tasks; Andrychowicz et al. 2017 (hindsight experience replay) take 0.2 and a scale of 0.1.
    """

    epsilon: Schedule = field(default_factory=lambda: ConstantSchedule(value=0.3))
    """Probability of an even draw from the Box, in [0, 1]."""
    noise: ExplorationPolicyParameters = field(default_factory=_fetch_noise)
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


class EpsilonGreedyNoisePolicy:
    """Even draws among another policy's actions [R, A]; an `ExplorationPolicy`."""

    def __init__(
        self, params: EpsilonGreedyNoise, actions: BoxActions, noise: AnyExplorationPolicy
    ) -> None:
        self._params = params
        self._actions = actions
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
        """Actions [R, A]."""
        numbers = state.draws.draw(rows)
        noisy = self._noise.explore(state.noise, rows, values, starts=starts, clock=clock)
        drawn = numbers[:, :1] < self._epsilon(clock)
        return np.where(drawn, self._actions.even(numbers[:, 1:]), noisy)

    def greedy(self, values: FloatArray) -> FloatArray:
        """The actions without noise, clipped, [R, A]."""
        return self._actions.greedy(values)

    def metrics(self, clock: Clock) -> dict[str, float]:
        """Epsilon, and the other policy's."""
        return {"exploration/epsilon": self._epsilon(clock), **self._noise.metrics(clock)}

    def _epsilon(self, clock: Clock) -> float:
        return scheduled(self._params.epsilon, clock, "EpsilonGreedyNoise.epsilon", high=1)
