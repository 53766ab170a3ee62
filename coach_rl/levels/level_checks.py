"""Checks of a level against what is below it, and its agent."""

from gymnasium import spaces

from coach_rl.core.agents import AnyAgent, EndingAgent
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.goals import GoalSpace, check_judging
from coach_rl.core.levels import LevelDescription, LevelSpace, NothingReceived, received_by
from coach_rl.core.spaces import EnvironmentSpaces


def agent_spaces(
    below: EnvironmentSpaces, space: LevelSpace | NothingReceived
) -> EnvironmentSpaces:
    """Return the agent's spaces; the goal or option it receives is part of its observation.

    Args:
        below: What the simulator or the level below shows and takes.
        space: What its level receives.
    """
    if not space.shown:
        return below
    observed = {**below.observation.spaces, **space.shown}
    return EnvironmentSpaces(observation=spaces.Dict(observed), action=below.action)


def check_ending(params: LevelDescription, agent: AnyAgent, *, is_top: bool) -> None:
    """Raise a ConfigurationError where the agent would end sub-episodes and is never called to.

    Args:
        params: What the level is like.
        agent: Its agent.
        is_top: Whether no level is above.
    """
    space = params.goal_space
    if not isinstance(agent, EndingAgent):
        return
    ends = (
        f"level '{params.name}': its agent ends its own sub-episodes ({type(agent).__name__}.ends)"
    )
    if is_top or space is None:
        raise ConfigurationError(
            f"{ends}, which is for levels that receive goals or options from a level above; leave "
            "out the method `ends`"
        )
    if space.ages:
        raise ConfigurationError(
            f"{ends}, and its goals end when their time is up; use a GoalSpace, or leave out the "
            "method `ends`"
        )


def check_level(params: LevelDescription, below: EnvironmentSpaces, *, is_top: bool) -> None:
    """Raise a ConfigurationError that names the level unless it fits on what is below.

    Args:
        params: What the level is like.
        below: What the simulator or the level below shows and takes.
        is_top: Whether no level is above.
    """
    name = params.name
    space = received_by(params)
    try:
        space.check(below.observation)
        if isinstance(space, GoalSpace):
            check_judging(space, below.observation)
        if not params.goal_is_terminal and space.ages:
            raise SpaceError(
                "goals with a time have nothing behind it; leave goal_is_terminal at True"
            )
        if is_top:
            space.check_given(below.observation)
    except SpaceError as error:
        raise SpaceError(f"level '{name}': {error}") from error
