"""PPO chooses among options in four rooms, or acts by itself and hardly ever finds the goal."""

from dataclasses import replace
from typing import Literal

import numpy as np

from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.agents.scripted_agent import ScriptedAgentParameters
from coach_rl.architectures.actor_critic import ActorCriticParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.architectures.update_engine import AdamParameters
from coach_rl.core.goals import OPTION_KEY, OptionSpace
from coach_rl.core.records import Action, Observation
from coach_rl.core.schedules import LinearSchedule
from coach_rl.core.spaces import Space
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments import parameters
from coach_rl.filters import InputFilter, ObservationNormalizationFilter
from coach_rl.graph_managers import (
    GraphParameters,
    HRLGraphManager,
    LevelParameters,
    ScheduleParameters,
    ValidationParameters,
)


def push(observation: Observation, space: Space) -> Action:  # noqa: ARG001 - as every script
    """Push in the direction of the option; the options go around the circle."""
    options = observation[OPTION_KEY]  # [R, K], a one among zeros
    angle = 2 * np.pi * np.argmax(options, axis=1) / options.shape[1]
    direction = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.asarray(direction / np.abs(direction).max(axis=1, keepdims=True), np.float32)


def graph_manager(
    hierarchy: Literal["options", "none"] = "options",
    options: int = 8,
    horizon: int = 8,
    num_envs: int = 16,
    steps: int = 1_000_000,
    rollout: int = 2048,
    learning_rate: float = 1e-3,
    discount: float = 0.99,
) -> HRLGraphManager:
    """A ball finds its way to a goal in another of four rooms, which pays only when it is reached.

    The upper level chooses a direction, the lower pushes that way for a while. How to push is
    scripted, where to go is learned. A step costs 1 until the goal is reached, at most 400.

    Args:
        hierarchy: options, or none: PPO pushes by itself, all else equal.
        options: Directions to choose from.
        horizon: Steps an option lasts.
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        rollout: Decisions collected before each round of updates.
        learning_rate: Adam's step size at the start; it falls to zero.
        discount: Gamma per environment step, whatever a decision lasts.
    """
    agent = PPOAgentParameters(
        algorithm=PPOAlgorithmParameters(
            rollout=EnvironmentSteps(rollout),
            minibatch=256,
            discount=discount,
            discount_by_duration=True,
            entropy_coefficient=0.01,
            learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
            scale_returns=True,
        ),
        network=ActorCriticParameters(torso=TorsoParameters(middleware=(128, 128))),
        optimizer=AdamParameters(learning_rate=learning_rate, epsilon=1e-5, max_gradient_norm=0.5),
        input_filter=InputFilter(
            observation={
                key: (ObservationNormalizationFilter(),) for key in ("observation", "desired_goal")
            }
        ),
    )
    above = LevelParameters(name="top", agent=agent)
    push_along = LevelParameters(
        name="low",
        agent=ScriptedAgentParameters(policy=push),
        goal_space=OptionSpace(count=options),
        horizon=horizon,
    )
    alone = replace(above, name="main")
    return HRLGraphManager(
        GraphParameters(
            levels=(alone,) if hierarchy == "none" else (above, push_along),
            environment=parameters("point_maze_four_rooms"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(steps),
                evaluation_interval=EnvironmentSteps(100_000),
                evaluation_episodes=EnvironmentEpisodes(50),
            ),
            num_envs=num_envs,
            reward_discount=discount,
            validation=ValidationParameters(reward=-160.0, within=EnvironmentSteps(1_000_000)),
        )
    )
