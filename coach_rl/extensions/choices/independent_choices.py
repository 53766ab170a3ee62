"""Exploration in MultiDiscrete spaces: a policy of its own for each choice."""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from gymnasium import spaces

from coach_rl.core.agents import RowState
from coach_rl.core.clock import Clock
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.saved import Saved
from coach_rl.core.seeding import integer_seed
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies.exploration_policy import ExplorationPolicyParameters


@dataclass(frozen=True, kw_only=True)
class ChoiceRows(Saved):
    """The state kept per row."""

    SAVED = ("choices",)

    choices: dict[str, RowState]
    """Row state of each choice's policy, by its number."""


class IndependentChoices:
    """Policies of a Discrete space, one for each choice; an `ExplorationPolicy`.

    Each sees the values of its own choice and draws its own numbers, so that choices explore
    independently of each other.

    Args:
        params: Description of each policy.
        space: The agent's action space, a flat MultiDiscrete.
    """

    def __init__(self, params: ExplorationPolicyParameters, space: Space) -> None:
        assert isinstance(space, spaces.MultiDiscrete), "another space has no choices"
        self._policies = [
            params.build(spaces.Discrete(int(size), start=int(start)))
            for size, start in zip(space.nvec, space.start, strict=True)
        ]
        bounds = [0, *np.cumsum(space.nvec).tolist()]
        self._columns = [slice(*each) for each in pairwise(bounds)]

    def new_rows(self, num_rows: int, seed: int) -> ChoiceRows:
        """Rows of each policy; the first choice has the seed that a Discrete space would have."""
        seeds = [seed, *(integer_seed(seed, str(n)) for n in range(1, len(self._policies)))]
        rows = zip(self._policies, seeds, strict=True)
        return ChoiceRows(
            choices={str(n): each.new_rows(num_rows, own) for n, (each, own) in enumerate(rows)}
        )

    def explore(
        self,
        state: ChoiceRows,
        rows: IntArray,
        values: FloatArray,
        *,
        starts: BoolArray,
        clock: Clock,
    ) -> IntArray:
        own = zip(self._policies, state.choices.values(), self._columns, strict=True)
        chosen = [
            policy.explore(choice, rows, values[:, columns], starts=starts, clock=clock)
            for policy, choice, columns in own
        ]
        return np.stack(chosen, axis=1)

    def greedy(self, values: FloatArray) -> IntArray:
        own = zip(self._policies, self._columns, strict=True)
        return np.stack([policy.greedy(values[:, columns]) for policy, columns in own], axis=1)

    def metrics(self, clock: Clock) -> dict[str, float]:
        """The metrics of one of them; all have the same schedules."""
        return self._policies[0].metrics(clock)
