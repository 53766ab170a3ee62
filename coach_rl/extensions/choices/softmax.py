"""Exploration in Discrete spaces by softmax: of action values, or of logits."""

from dataclasses import field

import numpy as np

from coach_rl.core.clock import Clock, ConstantSchedule, Schedule
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies.exploration_policy import (
    DiscreteActions,
    check_ends,
    scheduled,
)
from coach_rl.exploration_policies.sampling import CategoricalSampler


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
        starts: BoolArray,
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
