"""Robots of the workshop's presets: their worlds, and an agent that walks as an ant.

Meant to be imported by presets, the shipped ones and yours.
"""

from dataclasses import dataclass
from typing import Literal

import coach_rl as rl
from coach_rl.presets.panels import RunPanel, ppo_optimizer

Task = Literal["all", "walk", "press", "push"]
View = Literal["due", "walk", "press", "push"]
Robot = Literal["ball", "ant"]


@dataclass(frozen=True, kw_only=True)
class RobotSettings:
    """Settings of PPO that depend on the robot."""

    learning_rate: float
    discount: float


ROBOTS: dict[Robot, RobotSettings] = {
    "ball": RobotSettings(learning_rate=1e-3, discount=0.97),
    "ant": RobotSettings(learning_rate=3e-4, discount=0.98),
}
"""Settings by robot."""


@dataclass(frozen=True, kw_only=True)
class RobotPanel(RunPanel):
    """Settings of presets in the workshop."""

    robot: Robot = "ball"
    """The robot; the ant takes more steps."""
    num_envs: int = 64

    def interval(self, steps: int) -> int:
        """Environment steps between evaluations; an ant's take longer."""
        return steps if self.robot == "ball" else self.steps // 4


def world(robot: Robot, task: Task) -> rl.EnvironmentParameters:
    """The workshop of a robot."""
    if robot == "ball":
        return rl.WorkshopParameters(task=task)
    steps, noise = (300, 0.2) if task == "all" else (150, 0.0)
    workshop = rl.AntWorkshop(task=task, motor_noise=noise)
    return rl.MujocoTaskParameters(own_task=workshop, max_episode_steps=steps, threads=1)


def ant(view: View, settings: RobotSettings = ROBOTS["ant"]) -> rl.PPOAgentParameters:
    """PPO for an ant, whose observations are turned until the place of a task lies ahead.

    Args:
        view: The task; due: the one whose turn it is.
        settings: Of PPO.
    """
    hidden = rl.ObservationReductionBySubPartsNameFilter(
        names=rl.WORKSHOP_OBSERVED, sub_parts=("x", "y"), method="discard"
    )
    return rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(8192),
            epochs=10,
            minibatch=256,
            discount=settings.discount,
            recompute_advantages=True,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.05),
        ),
        network=rl.ActorCriticParameters(
            torso=rl.TorsoParameters(middleware=(256, 256), activation="tanh", orthogonal=True),
            initial_log_std=-0.7,
        ),
        optimizer=ppo_optimizer(settings.learning_rate),
        input_filter=rl.InputFilter(
            observation={"observation": (hidden, rl.ObservationNormalizationFilter(clip=10.0))}
        ),
        output_filter=rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=-1.0, high=1.0),)),
        symmetry=rl.WorkshopSymmetry(task=view),
    )
