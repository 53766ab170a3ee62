"""Comparison of an environment's goals, rewards and ends with those of hindsight.

Relabelled transitions have those of their goal space, the others those of the environment, and a
batch mixes them. For the same state and goal both should be the same.
"""

from typing import Protocol

import numpy as np

from coach_rl.core.errors import warn
from coach_rl.core.goals import GOAL_KEY, GoalSpace, Verdict
from coach_rl.core.records import Array, BoolArray, FloatArray, Observation
from coach_rl.memories.batches import REWARDS, TERMINATED
from coach_rl.memories.parts import Stored

_PRECISION = 1e-4
"""Largest difference of equal rewards, absolute and in parts of hindsight's."""
_MARGIN = 1e-3
"""Part of the way to the goal by which a state may be nearer or farther where rounding decides."""
_ENOUGH = 3
"""Episodes that must have ended at their goal before that is taken for a rule."""


class RelabelledGoals(Protocol):
    """The judgement of goals that transitions are compared with; see `Hindsight`."""

    @property
    def goal(self) -> GoalSpace: ...
    @property
    def stops_on_failure(self) -> bool: ...
    @property
    def goal_ends_episode(self) -> bool: ...
    def judged(
        self,
        observation: Observation,
        next_observation: Observation,
        *,
        moved: FloatArray | float = 0.0,
    ) -> Verdict: ...
    def failed(
        self, reached: BoolArray, *, terminated: BoolArray, below: Array | None
    ) -> BoolArray: ...


class HindsightComparison:
    """Warns once each where angles of goals, rewards and ends are not those of hindsight.

    Args:
        hindsight: How transitions are relabelled.
        owner: The agent, for messages.
    """

    def __init__(self, hindsight: RelabelledGoals, owner: str) -> None:
        self._hindsight = hindsight
        self._owner = owner
        self._compares_rewards = self._compares_ends = True
        goal = hindsight.goal
        self._compares_angles = bool(goal.angles) and goal.observed == "absolute"
        self._differing_ends = 0

    def compare(self, stored: Stored) -> None:
        """Compare transitions as they are stored.

        Warns:
            CoachWarning: The first of them has another goal, is rewarded, or ends, differently.
        """
        if self._compares_angles:
            self._compare_angles(stored)
        if not (self._compares_rewards or self._compares_ends):
            return
        verdict = self._hindsight.judged(stored.before, stored.after)
        if self._compares_rewards:
            self._compare_rewards(stored, verdict)
        if self._compares_ends:
            self._compare_ends(stored, verdict)

    def _compare_angles(self, stored: Stored) -> None:
        goal = self._hindsight.goal
        inside = goal.given_by(stored.before)
        wanted = stored.before[GOAL_KEY].reshape(inside.shape)
        (differing,) = (wanted != inside).any(axis=1).nonzero()
        if not len(differing):
            return
        self._compares_angles = False
        row = int(differing[0])
        warn(
            f"{self._owner}: the environment shows the goal {_shown(wanted[row])}, of which an "
            "angle lies out of the GoalSpace's bounds, and hindsight would show it as "
            f"{_shown(inside[row])}, so batches mix two numbers for one angle; set the GoalSpace's "
            "low and high to the environment's range"
        )

    def _compare_rewards(self, stored: Stored, verdict: Verdict) -> None:
        differs = _differ(stored.columns[REWARDS], verdict.reward)
        if not np.count_nonzero(differs):
            return
        if self._hindsight.stops_on_failure:
            differs &= ~self._hindsight.failed(
                verdict.is_final, terminated=stored.columns[TERMINATED], below=stored.below
            )
        for near in self._nearly(stored, verdict):
            differs &= _differ(stored.columns[REWARDS], near.reward)
        if not np.count_nonzero(differs):
            return
        self._compares_rewards = False
        row = int(differs.argmax())
        achieved = self._hindsight.goal.achieved(stored.after)[row]
        wanted = stored.before[GOAL_KEY].reshape(len(differs), -1)[row]
        warn(
            f"{self._owner}: the reward of a transition is {stored.columns[REWARDS][row]:g}, and "
            f"hindsight's GoalSpace gives {verdict.reward[row]:g} for it (achieved "
            f"{_shown(achieved)}, wanted {_shown(wanted)}), so batches mix two rewards; set the "
            "GoalSpace's threshold and reward to the environment's rule, or let the environment "
            "reward as the GoalSpace does"
        )

    def _compare_ends(self, stored: Stored, verdict: Verdict) -> None:
        if not np.count_nonzero(verdict.is_final):
            return
        terminal = self._hindsight.goal_ends_episode
        differs = verdict.is_final & (stored.columns[TERMINATED] != terminal)
        for near in self._nearly(stored, verdict):
            differs &= near.is_final
        self._differing_ends += int(np.count_nonzero(differs))
        if not terminal and np.count_nonzero(verdict.is_final & ~stored.columns[TERMINATED]):
            self._compares_ends = False  # others ended at their goal for another reason
            return
        if self._differing_ends < (1 if terminal else _ENOUGH):
            return
        self._compares_ends = False
        given, relabelled = ("not ", "") if terminal else ("", "not ")
        warn(
            f"{self._owner}: transitions that reach their goal are {given}terminal, and those "
            f"that hindsight relabels {relabelled}terminal (goal_ends_episode={terminal}), so "
            "batches mix two discounts; set HindsightParameters.goal_ends_episode="
            f"{not terminal}, or let episodes {'end' if terminal else 'continue'} at their goal"
        )

    def _nearly(self, stored: Stored, verdict: Verdict) -> list[Verdict]:
        """The verdicts where goals are a little nearer, and a little farther away."""
        seen = stored.before
        after = stored.after
        margin = _MARGIN * verdict.difference
        return [self._hindsight.judged(seen, after, moved=each) for each in (margin, -margin)]


def _differ(given: FloatArray, judged: FloatArray) -> BoolArray:
    """Return which rewards [R] differ."""
    differs: BoolArray = np.abs(given - judged) > _PRECISION * (1.0 + np.abs(judged))
    return differs


def _shown(goal: Array) -> str:
    return "(" + ", ".join(f"{value:.4g}" for value in goal.tolist()) + ")"
