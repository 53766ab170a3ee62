"""The judge and the parts of a level, chosen once, when it is built."""

from collections.abc import Iterator, Sequence

from coach_rl.core.agents import AnyAgent, DrawnAgent, EndingAgent
from coach_rl.core.goals import GoalSpace, takes
from coach_rl.core.level_parts import LevelPart
from coach_rl.core.levels import LevelDescription, LevelPartContext
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import InfoWatch
from coach_rl.levels.agent_parts import (
    AgentEnds,
    AgentPlans,
    AgentRows,
    DrawnEnds,
    FrozenDecisions,
    LevelTime,
)
from coach_rl.levels.goal_judging import GivenGoals, GoalJudge, OuterGoals
from coach_rl.levels.goal_rewards import LookingUpJudge, RewardedGoalJudge
from coach_rl.levels.horizons import FixedHorizon, OwnHorizons
from coach_rl.levels.judging import OptionJudge, SimulatorJudge
from coach_rl.levels.rows import LevelRows


def judge_of(
    level: LevelDescription,
    rows: LevelRows,
    *,
    above: Sequence[LevelDescription],
    watch: InfoWatch,
    now: LevelTime,
) -> SimulatorJudge:
    """The judge of a level.

    Args:
        level: What the level is like.
        rows: The level's.
        above: The levels above it in a chain, top first; empty in other graphs.
        watch: Warns of infos that rewards read.
        now: The agent's clock.

    Raises:
        ConfigurationError: Rewards read the level above, and there is none.
    """
    space = level.goal_space
    if isinstance(space, OptionSpace):
        return OptionJudge(space, rows)
    if not isinstance(space, GoalSpace):
        return SimulatorJudge()
    function = space.reward
    if isinstance(function, str):
        return GoalJudge(space, level, rows)
    if takes(function, 1):
        return RewardedGoalJudge(function, space, level, rows, watch=watch, now=now)
    return LookingUpJudge(function, space, level, rows, watch=watch, now=now, above=above)


def parts_of_task(
    context: LevelPartContext, rows: LevelRows, above: Sequence[LevelDescription]
) -> Iterator[LevelPart]:
    """The parts that come before the judge: the environment's goals, the horizon, outer goals.

    Args:
        context: Of the level.
        rows: The level's.
        above: The levels above, top first.
    """
    level = context.level
    if not above and isinstance(level.goal_space, GoalSpace):
        yield GivenGoals(level.goal_space, rows)
    if level.horizon is not None:
        if level.horizon_of is None:
            yield FixedHorizon(level.horizon, rows)
        else:
            yield OwnHorizons(level.horizon_of, level.horizon, context, rows)
    outer = goal_spaces(above)
    if outer:
        yield OuterGoals(outer, rows)


def goal_spaces(levels: Sequence[LevelDescription]) -> list[GoalSpace]:
    """The spaces of goals of those levels that have some."""
    spaces = (each.goal_space for each in levels)
    return [each for each in spaces if isinstance(each, GoalSpace)]


def ends_by(
    agent: AnyAgent,
    agent_rows: AgentRows,
    now: LevelTime,
    context: LevelPartContext,
    *,
    is_top: bool,
) -> Iterator[LevelPart]:
    """The ends that a level's agent decides on, where it does.

    Args:
        agent: The agent.
        agent_rows: Source of its state of the level's rows.
        now: The agent's clock.
        context: Of the level.
        is_top: Whether no level is above.
    """
    if is_top or not isinstance(agent, EndingAgent):
        return
    if getattr(agent, "ends_by_chance", False):
        yield DrawnEnds(agent, agent_rows, now, context)
    else:
        yield AgentEnds(agent, agent_rows, now, context)


def parts_of_agent(
    agent: AnyAgent, agent_rows: AgentRows, now: LevelTime, rows: LevelRows, level: LevelDescription
) -> Iterator[LevelPart]:
    """The parts that come last: plans of the agent, and what it does while frozen for a time.

    Args:
        agent: The agent.
        agent_rows: Source of its state of the level's rows.
        now: The agent's clock.
        rows: The level's.
        level: What the level is like.
    """
    if isinstance(agent, DrawnAgent):
        yield AgentPlans(agent, agent_rows)
    if level.may_freeze:
        yield FrozenDecisions(agent, agent_rows, now, rows)
