"""PPO in the workshop: one of its three tasks, or all of them in the order of the episode."""

from dataclasses import dataclass
from typing import Literal, Protocol

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, arrives, flat, ppo_optimizer

Task = Literal["all", "walk", "press", "push"]
View = Literal["due", "walk", "press", "push"]
Robot = Literal["ball", "ant"]


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    robot: Robot = "ball"
    """The robot; the ant takes more steps."""
    task: Task = "walk"
    """The task; all: walk, press and push in an order that each episode draws."""
    num_envs: int = 64
    steps: int = 150_000
    learning_rate: float = 1e-3
    """Learning rate of the ball at the start; that of the ant is 0.0003."""
    discount: float = 0.97
    due_ahead: bool = False
    """If True, the task whose turn it is lies ahead of an ant that learns all three, which thereby
    knows the order's meaning; otherwise the point does."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """A flat agent: it carries out one task, a part of `Workshop_PPO_Selector`, or all three."""
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(4096),
            epochs=6,
            minibatch=512,
            discount=panel.discount,
            entropy_coefficient=0.001,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.1),
        ),
        optimizer=ppo_optimizer(panel.learning_rate),
    )
    alone: View = "due" if panel.due_ahead else "walk"
    view = alone if panel.task == "all" else panel.task
    return flat(
        panel,
        agent if panel.robot == "ball" else ant(view),
        world(panel.robot, panel.task),
        panel.schedule(evaluation_interval=interval(panel, 25_000), evaluation_episodes=100),
        validation=arrives(0.9, within=panel.steps),
    )


class RobotPanel(Protocol):
    """A panel that has a robot and a number of steps."""

    @property
    def robot(self) -> Robot:
        """The robot."""
        ...

    @property
    def steps(self) -> int:
        """Environment steps to train for."""
        ...


def interval(panel: RobotPanel, steps: int) -> int:
    """Environment steps between evaluations; an ant's take longer."""
    return steps if panel.robot == "ball" else panel.steps // 4


def world(robot: Robot, task: Task) -> rl.EnvironmentParameters:
    """The workshop of a robot."""
    if robot == "ball":
        return rl.WorkshopParameters(task=task)
    steps = 300 if task == "all" else 150
    return rl.MujocoTaskParameters(
        own_task=rl.AntWorkshop(task=task), max_episode_steps=steps, threads=1
    )


def ant(view: View) -> rl.PPOAgentParameters:
    """An agent that walks: to it, the place of this task lies ahead and to the left."""
    hidden = rl.ObservationReductionBySubPartsNameFilter(
        names=rl.WORKSHOP_OBSERVED, sub_parts=("x", "y"), method="discard"
    )
    return rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(8192),
            epochs=10,
            minibatch=256,
            discount=0.98,
            recompute_advantages=True,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.05),
        ),
        network=rl.ActorCriticParameters(
            torso=rl.TorsoParameters(middleware=(256, 256), activation="tanh", orthogonal=True),
            initial_log_std=-0.7,
        ),
        optimizer=ppo_optimizer(3e-4),
        input_filter=rl.InputFilter(
            observation={"observation": (hidden, rl.ObservationNormalizationFilter(clip=10.0))}
        ),
        output_filter=rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=-1.0, high=1.0),)),
        symmetry=rl.WorkshopSymmetry(task=view),
    )
