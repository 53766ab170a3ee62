"""PPO chooses among options in four rooms, or acts by itself and hardly ever finds the goal."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from coach_rl import (
    OPTION_KEY,
    Action,
    ActorCriticParameters,
    AdamParameters,
    EnvironmentEpisodes,
    EnvironmentSteps,
    GoalWorldParameters,
    GraphManager,
    GraphParameters,
    HRLGraphManager,
    InputFilter,
    LevelParameters,
    LinearSchedule,
    Observation,
    ObservationNormalizationFilter,
    OptionSpace,
    PPOAgentParameters,
    PPOAlgorithmParameters,
    ScheduleParameters,
    ScriptedAgentParameters,
    Space,
    TorsoParameters,
    ValidationParameters,
)


@dataclass(frozen=True, kw_only=True)
class Panel:
    """Settings to change with -cp."""

    hierarchy: Literal["options", "none"] = "options"
    """options: PPO chooses among options. none: it pushes by itself, all else equal."""
    options: int = 8
    """Directions to choose from."""
    horizon: int = 8
    """Steps an option lasts."""
    num_envs: int = 16
    """Environments in parallel."""
    steps: int = 1_000_000
    """Environment steps to train for."""
    rollout: int = 2048
    """Decisions collected before each round of updates."""
    learning_rate: float = 1e-3
    """Learning rate at the start; it falls to zero."""
    discount: float = 0.99
    """Discount factor per environment step, however long a decision lasts."""


def push(observation: Observation, space: Space) -> Action:  # noqa: ARG001 - as every script
    """Push in the direction of the option; the options go around the circle."""
    options = observation[OPTION_KEY]  # [R, K], a one among zeros
    angle = 2 * np.pi * np.argmax(options, axis=1) / options.shape[1]
    direction = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.asarray(direction / np.abs(direction).max(axis=1, keepdims=True), np.float32)


def graph_manager(panel: Panel) -> GraphManager:
    """A ball finds its way to a goal in another of four rooms, which pays only when it is reached.

    The upper level chooses a direction, the lower pushes that way for a while. How to push is
    scripted, where to go is learned. A step costs 1 until the goal is reached, at most 400.
    """
    keys = ("observation", "desired_goal")
    agent = PPOAgentParameters(
        algorithm=PPOAlgorithmParameters(
            rollout=EnvironmentSteps(panel.rollout),
            minibatch=256,
            discount=panel.discount,
            discount_by_duration=True,
            entropy_coefficient=0.01,
            learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
            scale_returns=True,
        ),
        network=ActorCriticParameters(torso=TorsoParameters(middleware=(128, 128))),
        optimizer=AdamParameters(
            learning_rate=panel.learning_rate, epsilon=1e-5, max_gradient_norm=0.5
        ),
        input_filter=InputFilter(
            observation={key: (ObservationNormalizationFilter(),) for key in keys}
        ),
    )
    if panel.hierarchy == "none":
        levels: tuple[LevelParameters, ...] = (LevelParameters(agent=agent),)
    else:
        top = LevelParameters(name="top", agent=agent)
        low = LevelParameters(
            name="low",
            agent=ScriptedAgentParameters(policy=push),
            goal_space=OptionSpace(count=panel.options),
            horizon=panel.horizon,
        )
        levels = (top, low)
    return HRLGraphManager(
        GraphParameters(
            levels=levels,
            environment=GoalWorldParameters(level="point_maze_four_rooms"),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(panel.steps),
                evaluation_interval=EnvironmentSteps(100_000),
                evaluation_episodes=EnvironmentEpisodes(50),
            ),
            num_envs=panel.num_envs,
            reward_discount=panel.discount,
            validation=ValidationParameters(reward=-160.0, within=EnvironmentSteps(1_000_000)),
        )
    )
