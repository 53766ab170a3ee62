"""A mass learns skills, and at the same time which of them bring it to the middle of a square."""

from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy.typing as npt

import coach_rl as rl
from coach_rl.presets.panels import RunPanel, hrl, ppo_optimizer, solved

Rewards = npt.NDArray[Any]


@dataclass(frozen=True, kw_only=True)
class Panel(RunPanel):
    """Settings to change with -cp."""

    skills: Literal["own", "one", "option_critic"] = "own"
    """own: a network for each skill, rewarded for going its way. one: a network for all of them,
    the same rewards. option_critic: a network for all of them, the environment's reward, and ends
    that are learned."""
    horizon: int = 4
    """Steps after which a skill ends, if it has not ended itself."""
    steps: int = 24_000
    rollout: int = 256
    """Decisions that each agent collects before a round of updates."""
    learning_rate: float = 1e-3
    """Learning rate of all agents."""


def right(before: rl.Observation, after: rl.Observation, given: Rewards) -> Rewards:  # noqa: ARG001 - as every reward
    """The way made to the right."""
    return _way(before, after)[:, 0]


def up(before: rl.Observation, after: rl.Observation, given: Rewards) -> Rewards:  # noqa: ARG001
    """The way made upwards."""
    return _way(before, after)[:, 1]


def left(before: rl.Observation, after: rl.Observation, given: Rewards) -> Rewards:  # noqa: ARG001
    """The way made to the left."""
    return -_way(before, after)[:, 0]


def down(before: rl.Observation, after: rl.Observation, given: Rewards) -> Rewards:  # noqa: ARG001
    """The way made downwards."""
    return -_way(before, after)[:, 1]


def _way(before: rl.Observation, after: rl.Observation) -> Rewards:
    """The way that the mass has made, [R, 2]."""
    way: Rewards = (after["observation"] - before["observation"])[:, :2]
    return way


def graph_manager(panel: Panel) -> rl.GraphManager:
    """A mass in a square finds its way to the middle by four skills that it learns meanwhile.

    Each skill is rewarded for the way made in its direction, and knows nothing of the middle. The
    upper level chooses among skills, and is rewarded by the world: minus the distance to the
    middle, in each of 50 steps.
    """
    discount = 0.97
    top = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(panel.rollout),
            epochs=6,
            minibatch=64,
            discount=discount,
            discount_by_duration=True,
            entropy_coefficient=0.01,
            scale_returns=True,
        ),
        optimizer=ppo_optimizer(panel.learning_rate),
        update_mode="eager",
    )
    skill = replace(
        top,
        name="skill",
        algorithm=replace(
            top.algorithm, discount=0.9, discount_by_duration=False, entropy_coefficient=0.0
        ),
    )
    options = rl.OptionSpace(count=4, rewards=(right, up, left, down))
    match panel.skills:
        case "own":
            agent: rl.AgentParameters = rl.SkillAgentsParameters.of(skill, count=options.count)
        case "one":
            agent = replace(skill, name="skills")
        case "option_critic":
            options = rl.OptionSpace(count=4)
            agent = rl.OptionCriticAgentParameters(
                name="skills",
                algorithm=replace(skill.algorithm, discount=discount),
                optimizer=top.optimizer,
                update_mode="eager",
            )
    low = rl.LevelParameters(name="low", agent=agent, goal_space=options, horizon=panel.horizon)
    return hrl(
        panel,
        (rl.LevelParameters(name="top", agent=top), low),
        rl.PointMassParameters(),
        panel.schedule(evaluation_interval=4_000, evaluation_episodes=40),
        reward_discount=discount,
        validation=solved(-25.0, within=24_000),
    )
