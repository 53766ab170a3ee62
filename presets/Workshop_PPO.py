"""PPO in the workshop: one of its three tasks, or all of them in the order of the episode."""

from dataclasses import dataclass
from typing import Literal

import coach_rl as rl
from coach_rl.presets.panels import FlatPanel, arrives, flat, ppo_optimizer


@dataclass(frozen=True, kw_only=True)
class Panel(FlatPanel):
    """Settings to change with -cp."""

    task: Literal["all", "walk", "press", "push"] = "walk"
    """The task; all: walk, press and push in an order that each episode draws."""
    num_envs: int = 64
    steps: int = 150_000
    learning_rate: float = 1e-3
    discount: float = 0.97


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
    return flat(
        panel,
        agent,
        rl.WorkshopParameters(task=panel.task),
        panel.schedule(evaluation_interval=25_000, evaluation_episodes=100),
        validation=arrives(0.9, within=panel.steps),
    )
