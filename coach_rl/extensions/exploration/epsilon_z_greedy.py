"""Temporally extended exploration: a random action that is repeated for a random time."""

from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from annotated_types import Gt
from gymnasium import spaces

from coach_rl.core.agents import RowState
from coach_rl.core.clock import Clock, ConstantSchedule, Schedule
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies.exploration_policy import (
    AnyExplorationPolicy,
    BoxActions,
    DiscreteActions,
    ExplorationPolicyParameters,
    Greedy,
    ScheduledPolicy,
    check_ends,
)


@parameter_class
class EpsilonZGreedy:
    """Epsilon-greedy exploration whose random actions are repeated for a random duration.

    Dabney, Ostrovski and Barreto 2021, "Temporally-Extended epsilon-Greedy Exploration", algorithm
    1: durations n come from a zeta distribution, with probabilities proportional to n^-mu. Here a
    duration counts the first decision too, and a repetition ends with the (sub-)episode, or where
    an action mask forbids it.
    """

    epsilon: Schedule = field(default_factory=lambda: ConstantSchedule(value=0.1))
    """Probability that a decision outside a repetition begins one, in [0, 1]. The share of random
    decisions is larger: epsilon d / (1 - epsilon + epsilon d) for a mean duration d."""
    mu: Annotated[float, Gt(1)] = 2.0
    """Exponent of the durations, more than 1; the larger, the shorter. 2 is the paper's."""
    longest: Positive[int] = 10_000
    """Decisions of the longest duration that is drawn."""
    noise: ExplorationPolicyParameters = field(default_factory=Greedy)
    """The policy of the other decisions. Its processes continue in all of them."""

    def __post_init__(self) -> None:
        check_ends(self.epsilon, "EpsilonZGreedy.epsilon", high=1)

    def build(self, action_space: Space) -> "EpsilonZGreedyPolicy":
        """Build the policy for a Discrete space or a flat, bounded Box of floats."""
        kind = DiscreteActions if isinstance(action_space, spaces.Discrete) else BoxActions
        actions = kind(action_space, policy="EpsilonZGreedy")
        return EpsilonZGreedyPolicy(self, actions, self.noise.build(action_space))


@dataclass(frozen=True, kw_only=True)
class EpsilonZGreedyRows(Saved):
    """The state kept per row."""

    SAVED = ("draws", "action", "left", "noise")

    draws: RowNoise
    """2 + A uniform numbers a decision: whether, how long, and the action."""
    action: Array
    """The action that is repeated, [N] or [N, A]; of no meaning where nothing is left."""
    left: IntArray
    """Decisions left to repeat it for, [N]."""
    noise: RowState
    """The other policy's."""


class EpsilonZGreedyPolicy(ScheduledPolicy[DiscreteActions | BoxActions]):
    """Repeated random actions among another policy's; an `ExplorationPolicy`."""

    def __init__(
        self,
        params: EpsilonZGreedy,
        actions: DiscreteActions | BoxActions,
        noise: AnyExplorationPolicy,
    ) -> None:
        super().__init__(
            actions, params.epsilon, "EpsilonZGreedy.epsilon", "exploration/epsilon", high=1
        )
        self._noise = noise
        weights = np.arange(1, params.longest + 1, dtype=np.float64) ** -params.mu
        self._cumulative = weights.cumsum() / weights.sum()  # [longest], of durations from 1 on

    def new_rows(self, num_rows: int, seed: int) -> EpsilonZGreedyRows:
        """Streams of our own, no repetitions, and the other policy's rows."""
        size = self._actions.size
        return EpsilonZGreedyRows(
            draws=RowNoise(
                num_rows=num_rows, size=2 + size, kind="uniform", seed=seed, name="epsilon_z_greedy"
            ),
            action=self._actions.even(np.zeros((num_rows, size), np.float32)),
            left=np.zeros(num_rows, np.int64),
            # A seed of its own, or the same policy inside would draw the same numbers.
            noise=self._noise.new_rows(num_rows, integer_seed(seed, "epsilon_z_greedy")),
        )

    def explore(
        self,
        state: EpsilonZGreedyRows,
        rows: IntArray,
        values: FloatArray,
        *,
        starts: BoolArray,
        clock: Clock,
    ) -> Array:
        numbers = state.draws.draw(rows)
        actions = self._noise.explore(state.noise, rows, values, starts=starts, clock=clock).copy()
        allowed = self._actions.allowed(values, state.action[rows])
        left = np.where(starts | ~allowed, 0, state.left[rows])
        begins = (left == 0) & (numbers[:, 0] < self._now(clock))
        left[begins] = 1 + self._cumulative.searchsorted(numbers[begins, 1], side="right")
        state.action[rows[begins]] = self._actions.even(numbers[begins, 2:], values[begins])
        repeats = left > 0
        actions[repeats] = state.action[rows[repeats]]
        state.left[rows] = left - repeats
        return actions

    def metrics(self, clock: Clock) -> dict[str, float]:
        return super().metrics(clock) | self._noise.metrics(clock)
