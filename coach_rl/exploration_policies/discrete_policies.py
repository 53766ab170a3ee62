"""Exploration in Discrete spaces, chosen by action values: epsilon-greedy."""

from dataclasses import field

import numpy as np

from coach_rl.core.clock import Clock, LinearSchedule, Schedule
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.spaces import Space
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.exploration_policies.exploration_policy import (
    DiscreteActions,
    ScheduledPolicy,
    check_ends,
)


def _nature_dqn() -> Schedule:
    return LinearSchedule(start=1.0, end=0.1, over=EnvironmentSteps(1_000_000))


@parameter_class
class EpsilonGreedy:
    """Epsilon-greedy: with probability epsilon any action, uniformly (Watkins 1989)."""

    epsilon: Schedule = field(default_factory=_nature_dqn)
    """Probability of the draw, in [0, 1]; the greedy action is among those drawn. The default is
    that of Mnih et al. 2015, from 1 to 0.1 over a million steps; small tasks want fewer."""

    def __post_init__(self) -> None:
        check_ends(self.epsilon, "EpsilonGreedy.epsilon", high=1)

    def build(self, action_space: Space) -> "EpsilonGreedyPolicy":
        """Build the policy for a Discrete space."""
        return EpsilonGreedyPolicy(self, DiscreteActions(action_space, policy="EpsilonGreedy"))


class EpsilonGreedyPolicy(ScheduledPolicy[DiscreteActions]):
    """Epsilon-greedy choice by action values [R, n]; an `ExplorationPolicy`."""

    def __init__(self, params: EpsilonGreedy, actions: DiscreteActions) -> None:
        super().__init__(
            actions, params.epsilon, "EpsilonGreedy.epsilon", "exploration/epsilon", high=1
        )

    def new_rows(self, num_rows: int, seed: int) -> RowNoise:
        """Two uniform numbers a decision: whether, and which."""
        return RowNoise(num_rows=num_rows, size=2, kind="uniform", seed=seed, name="epsilon_greedy")

    def explore(
        self,
        state: RowNoise,
        rows: IntArray,
        values: FloatArray,
        *,
        starts: BoolArray,  # noqa: ARG002 - nothing lasts
        clock: Clock,
    ) -> IntArray:
        numbers = state.draw(rows)
        drawn = numbers[:, 0] < self._now(clock)
        even = self._actions.even(numbers[:, 1:], values)
        return np.where(drawn, even, self._actions.greedy(values))
