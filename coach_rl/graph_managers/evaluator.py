"""Evaluations that are made elsewhere while training continues: what is asked, and who is asked.

An evaluation is asked for with all that it depends on, the agents as they are at that moment. A
checkpoint keeps what has not been answered, so that it is asked again by whoever resumes.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from coach_rl.core.clock import Clock
from coach_rl.core.state import State
from coach_rl.graph_managers.evaluating import Scores

MOST_ASKED = 8
"""Evaluations that may be waited for; where one more is due, training waits for the first."""


@dataclass(frozen=True, kw_only=True)
class AskedEvaluation:
    """An evaluation that has been asked for."""

    policies: Mapping[str, State]
    """The agents' knowledge then, by their level's name: see `Agent.policy_state_dict`."""
    clock: State
    """The counters of training then."""
    success_is_reported: bool
    """True if success was known to be reported then."""

    @property
    def environment_steps(self) -> int:
        """Environment steps at which it was asked for."""
        return int(self.clock["environment_steps"])

    def clock_then(self, clock: Clock) -> Clock:
        """The counters of training then, as a clock like this one."""
        then = Clock(planned=clock.planned, wall_seconds=clock.wall_seconds)
        then.load_state_dict(self.clock)
        return then


class Evaluator(Protocol):
    """Someone who makes evaluations, one after the other, without being waited for.

    evaluator.ask(asked)
    if evaluator.has_answered():
        scores = evaluator.answer()
    """

    def ask(self, evaluation: AskedEvaluation) -> None:
        """Add an evaluation to those that are to be made, unless it is among them."""
        ...

    def has_answered(self, *, wait_seconds: float = 0.0) -> bool:
        """Return whether the first evaluation is over, after waiting for it that long at most."""
        ...

    def answer(self) -> Scores:
        """Take the result of the first evaluation, which is over, from the list.

        Raises:
            CoachError: It could not be made.
        """
        ...

    def forget(self) -> None:
        """Drop all evaluations that were asked for."""
        ...
