"""Exploration in Discrete spaces, chosen by action values: epsilon-greedy and softmax."""

from dataclasses import field

import numpy as np

from coach_rl.core.clock import Clock, ConstantSchedule, LinearSchedule, Schedule
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.spaces import Space
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.exploration_policies.exploration_policy import (
    DiscreteActions,
    ScheduledPolicy,
    check_ends,
    scheduled,
)
from coach_rl.exploration_policies.sampling import CategoricalSampler


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
        super().__init__(actions, params.epsilon, "EpsilonGreedy.epsilon", high=1)

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


@parameter_class
class Boltzmann:
    """An action with probability proportional to exp(value / temperature).

    Sutton and Barto 2018, section 13.1 and exercise 2.9 (softmax action selection).
    """

    temperature: Schedule = field(default_factory=lambda: ConstantSchedule(value=1.0))
    """Temperature in units of the action values, 0 or more: large is near uniform, 0 is greedy."""

    def __post_init__(self) -> None:
        check_ends(self.temperature, "Boltzmann.temperature")

    def build(self, action_space: Space) -> "SoftmaxPolicy":
        """Build the policy for a Discrete space."""
        actions = DiscreteActions(action_space, policy="Boltzmann")
        return SoftmaxPolicy(actions, temperature=self.temperature)


@parameter_class
class Categorical:
    """An action by its probability; the values are logits."""

    def build(self, action_space: Space) -> "SoftmaxPolicy":
        """Build the policy for a Discrete space."""
        return SoftmaxPolicy(DiscreteActions(action_space, policy="Categorical"), temperature=None)


class SoftmaxPolicy:
    """Actions drawn by exp(values / temperature), values [R, n]; an `ExplorationPolicy`.

    Args:
        actions: The space.
        temperature: None takes the values as logits and logs nothing.
    """

    def __init__(self, actions: DiscreteActions, *, temperature: Schedule | None) -> None:
        self._actions = actions
        self._temperature = temperature
        self._sampler = CategoricalSampler(sizes=(actions.count,), single=True)

    def new_rows(self, num_rows: int, seed: int) -> RowNoise:
        """A uniform number a decision."""
        return RowNoise(num_rows=num_rows, size=1, kind="uniform", seed=seed, name="softmax")

    def explore(
        self,
        state: RowNoise,
        rows: IntArray,
        values: FloatArray,
        *,
        starts: BoolArray,  # noqa: ARG002 - nothing lasts
        clock: Clock,
    ) -> IntArray:
        noise = state.draw(rows)
        logits = values
        if self._temperature is not None:
            temperature = scheduled(self._temperature, clock, "Boltzmann.temperature")
            if temperature == 0:
                return self.greedy(values)
            # Differences to the best, so that a small temperature leads to -inf and never to NaN.
            best = values.max(axis=1, keepdims=True)
            with np.errstate(over="ignore"):
                logits = (values - best).astype(np.float64) / temperature
        return self._actions.numbered(self._sampler.draw(logits, noise)[0])

    def greedy(self, values: FloatArray) -> IntArray:
        return self._actions.greedy(values)

    def metrics(self, clock: Clock) -> dict[str, float]:
        if self._temperature is None:
            return {}
        return {
            "exploration/temperature": scheduled(self._temperature, clock, "Boltzmann.temperature")
        }
