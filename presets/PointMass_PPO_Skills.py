"""A mass learns skills, and at the same time which of them lead it to the middle of a square."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy.typing as npt

from coach_rl import (
    AdamParameters,
    AgentParameters,
    EnvironmentEpisodes,
    EnvironmentSteps,
    GraphManager,
    GraphParameters,
    HRLGraphManager,
    LevelParameters,
    Observation,
    OptionCriticAgentParameters,
    OptionSpace,
    PointMassParameters,
    PPOAgentParameters,
    PPOAlgorithmParameters,
    ScheduleParameters,
    SkillAgentsParameters,
    ValidationParameters,
)

Rewards = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Settings to change with -cp."""

    skills: Literal["own", "one", "option_critic"] = "own"
    """own: a network for each skill, rewarded for going its way. one: a network for all of them,
    the same rewards. option_critic: a network for all of them, the environment's reward, and ends
    that are learned."""
    horizon: int = 4
    """Steps after which a skill ends, if it has not ended itself."""
    num_envs: int = 8
    """Environments in parallel."""
    steps: int = 24_000
    """Environment steps to train for."""
    rollout: int = 256
    """Decisions that each agent collects before a round of updates."""
    learning_rate: float = 1e-3
    """Learning rate of all agents."""


def right(before: Observation, after: Observation, given: Rewards) -> Rewards:  # noqa: ARG001 - as every reward
    """The way made to the right."""
    return _way(before, after)[:, 0]


def up(before: Observation, after: Observation, given: Rewards) -> Rewards:  # noqa: ARG001
    """The way made upwards."""
    return _way(before, after)[:, 1]


def left(before: Observation, after: Observation, given: Rewards) -> Rewards:  # noqa: ARG001
    """The way made to the left."""
    return -_way(before, after)[:, 0]


def down(before: Observation, after: Observation, given: Rewards) -> Rewards:  # noqa: ARG001
    """The way made downwards."""
    return -_way(before, after)[:, 1]


def _way(before: Observation, after: Observation) -> Rewards:
    """The way that the mass has made, [R, 2]."""
    way: Rewards = (after["observation"] - before["observation"])[:, :2]
    return way


def graph_manager(panel: Panel) -> GraphManager:
    """A mass in a square finds its way to the middle by four skills that it learns meanwhile.

    Each skill is rewarded for the way made in its direction, and knows nothing of the middle. The
    upper level chooses among skills, and is rewarded by the world: minus the distance to the
    middle, in each of 50 steps.
    """
    discount = 0.97
    top = PPOAgentParameters(
        algorithm=PPOAlgorithmParameters(
            rollout=EnvironmentSteps(panel.rollout),
            epochs=6,
            minibatch=64,
            discount=discount,
            discount_by_duration=True,
            entropy_coefficient=0.01,
            scale_returns=True,
        ),
        optimizer=AdamParameters(
            learning_rate=panel.learning_rate, epsilon=1e-5, max_gradient_norm=0.5
        ),
        update_mode="eager",
    )
    skill = replace(
        top,
        name="skill",
        algorithm=replace(
            top.algorithm, discount=0.9, discount_by_duration=False, entropy_coefficient=0.0
        ),
    )
    options = OptionSpace(count=4, rewards=(right, up, left, down))
    match panel.skills:
        case "own":
            agent: AgentParameters = SkillAgentsParameters.of(skill, count=options.count)
        case "one":
            agent = replace(skill, name="skills")
        case "option_critic":
            options = OptionSpace(count=4)
            agent = OptionCriticAgentParameters(
                name="skills",
                algorithm=replace(skill.algorithm, discount=discount),
                optimizer=top.optimizer,
                update_mode="eager",
            )
    return HRLGraphManager(
        GraphParameters(
            levels=(
                LevelParameters(name="top", agent=top),
                LevelParameters(
                    name="low",
                    agent=agent,
                    goal_space=options,
                    horizon=panel.horizon,
                ),
            ),
            environment=PointMassParameters(),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(panel.steps),
                evaluation_interval=EnvironmentSteps(4_000),
                evaluation_episodes=EnvironmentEpisodes(40),
            ),
            num_envs=panel.num_envs,
            reward_discount=discount,
            validation=ValidationParameters(reward=-25.0, within=EnvironmentSteps(24_000)),
        )
    )
