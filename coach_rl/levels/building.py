"""The judge and the parts of a level, chosen once, when it is built."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from coach_rl.core.agents import DrawnAgent, EndingAgent
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GoalSpace, takes
from coach_rl.core.level_parts import LevelPart
from coach_rl.core.levels import LevelDescription
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import End
from coach_rl.levels.agent_parts import AgentEnds, AgentPlans, DrawnEnds, FrozenDecisions
from coach_rl.levels.context import LevelContext
from coach_rl.levels.goal_judging import GivenGoals, GoalJudge, OuterGoals
from coach_rl.levels.goal_rewards import LookingUpJudge, RewardedGoalJudge
from coach_rl.levels.horizons import FixedHorizon, OwnHorizons
from coach_rl.levels.judging import SimulatorJudge
from coach_rl.levels.option_judging import OptionJudge


def clock_of(level: LevelDescription, stack: Clock) -> Callable[[], Clock]:
    """Source of the clock that a level's agent reads: a frozen one is always in TEST."""
    if not level.frozen:
        return partial(stack.of_level, level.name)
    frozen = Clock(phase=Phase.TEST)
    return lambda: frozen


def goal_spaces(levels: Sequence[LevelDescription]) -> list[GoalSpace]:
    """The spaces of goals of those levels that have some."""
    return [each.goal_space for each in levels if isinstance(each.goal_space, GoalSpace)]


def judge_of(context: LevelContext) -> SimulatorJudge:
    """The judge of a level.

    Raises:
        ConfigurationError: Rewards read the level above, and there is none.
    """
    match context.level.goal_space:
        case OptionSpace() as options:
            return OptionJudge(options, context)
        case GoalSpace(reward=str()) as goals:
            return GoalJudge(goals, context)
        case GoalSpace() as goals:
            function: Any = goals.reward  # texts have been
            kind = RewardedGoalJudge if takes(function, 1) else LookingUpJudge
            return kind(function, goals, context)
    return SimulatorJudge()


def parts_before(context: LevelContext) -> Iterator[LevelPart]:
    """The parts that come before the judge: the environment's goals, the horizon, outer goals."""
    level = context.level
    outer = goal_spaces(context.above)
    if not context.above and isinstance(level.goal_space, GoalSpace):
        yield GivenGoals(level.goal_space, context.rows)
    if level.horizon is not None:
        yield (FixedHorizon if level.horizon_of is None else OwnHorizons)(context, level.horizon)
    if outer:
        yield OuterGoals(outer, context.rows)


def ends_by_agent(context: LevelContext) -> Iterator[LevelPart]:
    """The ends that a level's agent decides on, where it does."""
    agent = context.agent
    if context.above and isinstance(agent, EndingAgent):
        by_chance = getattr(agent, "ends_by_chance", False)
        yield (DrawnEnds if by_chance else AgentEnds)(agent, context)


def parts_behind(context: LevelContext) -> Iterator[LevelPart]:
    """The parts that come last: plans of the agent, and what it does while frozen for a time."""
    if isinstance(context.agent, DrawnAgent):
        yield AgentPlans(context.agent, context)
    for change in context.level.changes:
        if change.may_freeze:
            yield FrozenDecisions(context)
            return


def by_key(parts: Sequence[LevelPart], level: str) -> dict[str, LevelPart]:
    """The parts that have a state, by its key; ConfigurationError if two have one key."""
    found: dict[str, LevelPart] = {}
    for part in parts:
        if part.key in found:
            raise ConfigurationError(
                f"level '{level}' has two parts that save their state as '{part.key}' "
                f"({type(found[part.key]).__name__} and {type(part).__name__}); leave out one"
            )
        if part.key:
            found[part.key] = part
    return found


def named_ends(parts: Sequence[LevelPart], level: LevelDescription) -> dict[str, End]:
    """Reasons for ends that parts bring, by their name in the log."""
    found: dict[str, End] = {}
    for part in parts:
        found |= part.ended_by
    for described in level.parts:
        found |= described.ended_by
    return found
