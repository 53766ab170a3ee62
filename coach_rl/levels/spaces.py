"""The spaces of a level's agent, and the check that a level fits on the one below it."""

from gymnasium import spaces

from coach_rl.core.agents import AnyAgent, EndingAgent
from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.levels import LevelDescription, LevelSpace
from coach_rl.core.options import OptionSpace
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.levels.failures import failure_reward


def agent_spaces(below: EnvironmentSpaces, space: LevelSpace | None) -> EnvironmentSpaces:
    """Return the agent's spaces; the goal or option it receives is part of its observation.

    Args:
        below: What the simulator or the level below shows and takes.
        space: What its level receives; None for nothing.
    """
    if space is None:
        return below
    observed = {**below.observation.spaces, **space.shown}
    return EnvironmentSpaces(observation=spaces.Dict(observed), action=below.action)


def check_ending(params: LevelDescription, agent: AnyAgent) -> None:
    """Raise a ConfigurationError where the agent would end sub-episodes and is never called to.

    Args:
        params: What the level is like.
        agent: Its agent.
    """
    if isinstance(agent, EndingAgent) and not isinstance(params.goal_space, OptionSpace):
        raise ConfigurationError(
            f"level '{params.name}': its agent ends its own sub-episodes "
            f"({type(agent).__name__}.ends), which is for levels that receive options; give the "
            "level an OptionSpace, or the agent no method `ends`"
        )


def check_level(params: LevelDescription, below: EnvironmentSpaces, *, is_top: bool) -> None:
    """Raise a ConfigurationError that names the level unless it fits on what is below.

    Args:
        params: What the level is like.
        below: What the simulator or the level below shows and takes.
        is_top: Whether no level is above.
    """
    name, space = params.name, params.goal_space
    if params.stops_on_failure != "never":
        failure_reward(params)
    if space is None:
        if not is_top:
            raise ConfigurationError(
                f"level '{name}' needs a goal_space: the level above acts in it"
            )
        return
    try:
        space.check(below.observation)
        if not params.goal_is_terminal and space.sent_size > space.size:
            raise SpaceError(
                "goals with a time have nothing behind it; leave goal_is_terminal at True"
            )
        if is_top:
            if isinstance(space, OptionSpace):
                raise SpaceError("the top level has no options: nobody is above to choose one")
            space.check_given(below.observation)
    except SpaceError as error:
        raise SpaceError(f"level '{name}': {error}") from error
