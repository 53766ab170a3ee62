"""Levels that certify their decisions: what they must have, and the simulators of their forks."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from coach_rl.core.agents import AnyAgent, ForkLearner, PacedAgent, ProposingAgent
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.goals import GoalSpace, TimedGoalSpace
from coach_rl.core.interfaces import Environment, EnvironmentParameters, ReplayedEnvironment
from coach_rl.core.levels import LevelDescription
from coach_rl.core.shown_text import shown_level
from coach_rl.core.signals import SignalChannel
from coach_rl.graph_managers.restoring import obstacle_to_restoring

Purpose = Literal["training", "evaluation"]


@dataclass(frozen=True, kw_only=True)
class Forks:
    """The simulators in which the levels of one stack try their decisions."""

    environment: EnvironmentParameters
    """The same as that of the stack."""
    opened: ExitStack
    """Closes them."""
    channel: SignalChannel
    """The channel that agents note through; it has no listener in a fork."""

    def build(self, num_envs: int) -> Environment:
        """Simulators of a fork."""
        simulators = self.environment.build(num_envs=num_envs)
        self.opened.callback(simulators.close)
        return simulators


def certifies(level: LevelDescription, purpose: str) -> bool:
    """Return whether a level certifies its decisions in the stack for that purpose."""
    return level.certify is not None and level.certify.during in ("always", purpose)


def require_certifiable(levels: Sequence[LevelDescription], *, workers: int) -> None:
    """Raise a ParameterError that names the level unless each that certifies has what it needs.

    Args:
        levels: Top first.
        workers: Number of processes that collect for the run.
    """
    for index, level in enumerate(levels):
        if level.certify is None:
            continue
        name, below = f"level '{level.name}' certifies its decisions", levels[index + 1 :]
        require(
            len(below) > 0,
            f"{name}, and no level below could try them; give certify to a level above it",
        )
        require(
            isinstance(below[0].goal_space, GoalSpace),
            f"{name}, and level '{below[0].name}' has no goals that could be reached; give it a "
            "GoalSpace as goal_space, or leave out certify",
        )
        for each in below:
            require(
                each.horizon is not None or isinstance(each.goal_space, TimedGoalSpace),
                f"{name}, and tries may never end, because level '{each.name}' has neither a "
                "horizon nor goals with a time; give it one of the two",
            )
        require(
            level.certify.prefer == "first" or isinstance(level.goal_space, GoalSpace),
            f"{name} by their distance to its own goal (certify.prefer='nearest'), and has none; "
            "give it a goal_space, or prefer 'first'",
        )
        require(
            not (level.certify.learn and level.frozen),
            f"{name} to learn from tries (certify.learn), and is frozen; leave out one of the two",
        )
        require(
            not (workers and certifies(level, "training")),
            f"{name} in training, which workers cannot do for it; leave out --workers "
            "(collection.workers), or set certify.during='evaluation'",
        )


def check_certifying(
    level: LevelDescription,
    agent: AnyAgent,
    simulators: Environment,
    environment: EnvironmentParameters,
    *,
    purpose: str,
) -> None:
    """Raise a ConfigurationError that names the level unless agent and simulators can certify.

    Args:
        level: A level that certifies.
        agent: The level's.
        simulators: Under the lowest level.
        environment: Their parameters.
        purpose: Of the stack.
    """
    assert level.certify is not None
    name, kind = f"level '{level.name}' cannot certify its decisions", type(agent).__name__
    if not (isinstance(agent, ProposingAgent) and agent.proposes):
        raise ConfigurationError(
            f"{name}: its agent ({kind}) has no alternatives to what it decides; let it explore, "
            "take another agent, or leave out certify"
        )
    if level.certify.learn and not isinstance(agent, ForkLearner):
        raise ConfigurationError(
            f"{name} with certify.learn: its agent ({kind}) learns from what was done, not from "
            "tries; leave out learn"
        )
    if purpose == "training" and isinstance(agent, PacedAgent) and agent.is_on_policy:
        raise ConfigurationError(
            f"{name} in training: its agent ({kind}) learns only from its policy's own choices; "
            "set certify.during='evaluation', or take an off-policy agent"
        )
    if isinstance(simulators, ReplayedEnvironment) and simulators.replays_episodes:
        obstacle: str | None = "it restores a state by living through the episode once more"
    else:
        obstacle = obstacle_to_restoring(simulators, environment)
    if obstacle is not None:
        raise ConfigurationError(
            f"{name}: '{shown_level(environment.level)}' cannot be forked: {obstacle}; leave out "
            "certify, or take an environment that saves its state, such as a MuJoCo task"
        )
