"""The parts of a level that some agents bring: ends of their own, plans, and being frozen."""

from dataclasses import replace
from types import MappingProxyType
from typing import Any

import numpy as np

from coach_rl.core.agents import DrawnAgent, EndingAgent
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import RunError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.level_parts import Judgement, LevelPart
from coach_rl.core.records import (
    Array,
    BoolArray,
    Directive,
    End,
    EnvResponse,
    IntArray,
    Observation,
    Outcome,
)
from coach_rl.core.saved import SavedAttribute
from coach_rl.levels.context import LevelContext
from coach_rl.levels.draws import Draws
from coach_rl.levels.judging import end_bits


class AgentEnds(LevelPart):
    """Ends of options or goals that the level's agent decides on.

    Args:
        agent: The agent.
        context: Of the level.
    """

    by_chance = False
    """True if the agent returns chances."""

    def __init__(self, agent: EndingAgent[Any], context: LevelContext) -> None:
        self._agent = agent
        self._context = context
        if isinstance(context.level.goal_space, GoalSpace):  # options have figures of their own
            self.ended_by = MappingProxyType({"own_end": End.OPTION})

    def judged(self, judgement: Judgement, answer: EnvResponse, shown: Observation) -> Judgement:
        stopped = self._stopped(answer.rows, shown)
        return judgement._replace(
            truncated=judgement.truncated | (stopped & ~judgement.terminated),
            end=judgement.end | end_bits(stopped, End.OPTION),
            is_over=judgement.is_over | stopped,
        )

    def _stopped(self, rows: IntArray, shown: Observation) -> BoolArray:
        """True where the agent ends its option or goal, [R]."""
        return self._answer(rows, shown)

    def _answer(self, rows: IntArray, shown: Observation) -> Array:
        """Ends, or their chances, by the agent, [R]; RunError if it returns something else."""
        context = self._context
        found = self._agent.ends(context.agent_rows(), rows, shown, context.now().for_choices())
        owner = f"level '{context.level.name}': {type(self._agent).__name__}.ends"
        return checked_ends(found, len(rows), by_chance=self.by_chance, owner=owner)


class DrawnEnds(AgentEnds):
    """The same of an agent with `ends_by_chance`: the level draws.

    Args:
        agent: The agent.
        context: Of the level.
    """

    key = "drawn_ends"
    by_chance = True
    SAVED = (SavedAttribute("_draws", inline=True),)

    def __init__(self, agent: EndingAgent[Any], context: LevelContext) -> None:
        super().__init__(agent, context)
        self._draws = Draws(f"ends of {context.level.name}", context)

    def begin_streams(self) -> None:
        self._draws.begin_streams()

    def _stopped(self, rows: IntArray, shown: Observation) -> BoolArray:
        chances = self._answer(rows, shown)
        stopped: BoolArray = self._draws.draw(rows) < chances
        return stopped


class AgentPlans(LevelPart):
    """Figures of the plans of an agent that plans.

    Args:
        agent: The agent.
        context: Of the level.
    """

    def __init__(self, agent: DrawnAgent[Any], context: LevelContext) -> None:
        self._agent = agent
        self._context = context

    def metrics(self) -> dict[str, float]:
        return self._agent.planning(self._context.agent_rows())


class FrozenDecisions(LevelPart):
    """Keeps decisions from being learned that an agent made while it was frozen for a time.

    Args:
        context: Of the level.
    """

    def __init__(self, context: LevelContext) -> None:
        self._context = context

    def decided(self, rows: IntArray, directive: Directive) -> Directive:
        context = self._context
        context.rows.decision_frozen[rows] = context.now().phase is Phase.TEST
        return directive

    def observed(self, outcome: Outcome, answer: EnvResponse, clock: Clock) -> Outcome:  # noqa: ARG002
        context = self._context
        frozen = context.rows.decision_frozen[outcome.rows]
        if not clock.learns or not np.count_nonzero(frozen):
            return outcome
        in_test = replace(clock, phase=Phase.TEST)
        context.agent.observe(context.agent_rows(), outcome.rows_of(frozen), in_test)
        return outcome.rows_of(~frozen)


def checked_ends(found: Array, count: int, *, by_chance: bool, owner: str) -> Array:
    """The ends [R] that an agent returned, or their chances.

    Args:
        found: What its method `ends` returned.
        count: R.
        by_chance: Whether they are chances.
        owner: The level and the method, for messages.

    Raises:
        RunError: It is something else.
    """
    ends = np.asarray(found)
    fits = ends.shape == (count,) and ends.dtype.kind in ("fbiu" if by_chance else "b")
    if not fits or (by_chance and not ((ends >= 0) & (ends <= 1)).all()):
        needed = "a chance from 0 to 1" if by_chance else "True or False"
        raise RunError(
            f"{owner} must return {needed} for each of {count} rows, got "
            f"{' '.join(repr(found).split()):.80}"
        )
    return ends
