"""PPO in the workshop: one of its three tasks, or all of them in the order of the episode."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.panels import arrives, flat, ppo_optimizer, with_given
from coach_rl.presets.workshop_robots import ROBOTS, RobotPanel, Task, View, ant, world


@dataclass(frozen=True, kw_only=True)
class Panel(RobotPanel):
    """Settings to change with -cp."""

    task: Task = "walk"
    """The task; all: walk, press and push in an order that each episode draws."""
    steps: int = 150_000
    learning_rate: float | None = None
    """Learning rate at the start; None: 0.001 of the ball, 0.0003 of the ant."""
    discount: float | None = None
    """Discount factor; None: 0.97 of the ball, 0.98 of the ant."""
    due_ahead: bool = False
    """If True, the task whose turn it is lies ahead of an ant that learns all three, which thereby
    knows the order's meaning; otherwise the point does."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """A flat agent: it carries out one task, a part of `Workshop_PPO_Selector`, or all three."""
    settings = with_given(ROBOTS[panel.robot], panel)
    agent = rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(4096),
            epochs=6,
            minibatch=512,
            discount=settings.discount,
            entropy_coefficient=0.001,
            learning_rate_schedule=rl.LinearSchedule(start=1.0, end=0.1),
        ),
        optimizer=ppo_optimizer(settings.learning_rate),
    )
    alone: View = "due" if panel.due_ahead else "walk"
    view = alone if panel.task == "all" else panel.task
    return flat(
        panel,
        agent if panel.robot == "ball" else ant(view, settings),
        world(panel.robot, panel.task),
        panel.schedule(evaluation_interval=panel.interval(25_000), evaluation_episodes=100),
        validation=arrives(0.9, within=panel.steps),
    )
