"""PPO chooses among options in four rooms, or acts by itself and hardly ever finds the goal."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, hrl, ppo_optimizer, solved


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    hierarchy: Literal["options", "none"] = "options"
    """options: PPO chooses among options. none: it pushes by itself, all else equal."""
    options: int = 8
    """Directions to choose from."""
    horizon: int = 8
    """Steps an option lasts."""
    num_envs: int = 16
    steps: int = 1_000_000
    rollout: int = 2048
    """Decisions collected before each round of updates."""
    learning_rate: float = 1e-3
    discount: float = 0.99
    """Discount factor per environment step, however long a decision lasts."""


def push(observation: rl.Observation, space: rl.Space) -> rl.Action:  # noqa: ARG001 - as every script
    """Push in the direction of the option; the options go around the circle."""
    options = observation[rl.OPTION_KEY]  # [R, K], a one among zeros
    angle = 2 * np.pi * np.argmax(options, axis=1) / options.shape[1]
    direction = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    return np.asarray(direction / np.abs(direction).max(axis=1, keepdims=True), np.float32)


def graph_manager(panel: Panel) -> rl.GraphManager:
    """A ball finds its way to a goal in another of four rooms, which pays only when it is reached.

    The upper level chooses a direction, the lower pushes that way for a while. How to push is
    scripted, where to go is learned. A step costs 1 until the goal is reached, at most 400.
    """
    keys = ("observation", "desired_goal")
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(panel.rollout),
            minibatch=256,
            discount=panel.discount,
            discount_by_duration=True,
            entropy_coefficient=0.01,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.0),
            scale_returns=True,
        ),
        network=rl.ActorCriticParameters(torso=rl.TorsoParameters(middleware=(128, 128))),
        optimizer=ppo_optimizer(panel.learning_rate),
        input_filter=rl.InputFilter(
            observation={key: (rl.ObservationNormalizationFilter(),) for key in keys}
        ),
    )
    if panel.hierarchy == "none":
        levels: tuple[rl.LevelParameters, ...] = (rl.LevelParameters(agent=agent),)
    else:
        top = rl.LevelParameters(name="top", agent=agent)
        low = rl.LevelParameters(
            name="low",
            agent=rl.ScriptedAgentParameters(policy=push),
            goal_space=rl.OptionSpace(count=panel.options),
            horizon=panel.horizon,
        )
        levels = (top, low)
    return hrl(
        panel,
        levels,
        rl.GoalWorldParameters(level="point_maze_four_rooms"),
        panel.schedule(evaluation_interval=100_000, evaluation_episodes=50),
        reward_discount=panel.discount,
        validation=solved(-160.0, within=1_000_000),
    )
