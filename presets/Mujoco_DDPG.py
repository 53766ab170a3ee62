"""DDPG on the MuJoCo tasks, with the settings of Tianshou's 2021 MuJoCo benchmark."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.mujoco_tasks import OffPolicyPanel, off_policy_experiment

MARKS = {
    "half_cheetah": (6000.0, 300_000),
    "hopper": (800.0, 500_000),
    "inverted_pendulum": (950.0, 50_000),
    "reacher": (-6.0, 50_000),
}
"""Evaluation reward to reach, and environment steps by which, by task."""


@dataclass(frozen=True, kw_only=True)
class Panel(OffPolicyPanel):
    """Settings to change with -cp."""

    learning_rate: float = 1e-3
    """Learning rate of actor and critic."""
    noise: float = 0.1
    """Standard deviation of the exploration noise, in half-ranges of the action."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """DDPG on a MuJoCo task."""
    agent = rl.DDPGAgentParameters(
        algorithm=rl.DDPGAlgorithmParameters(discount=panel.task_discount),
        learning=panel.learning,
        memory=panel.replay_memory,
        exploration=rl.GaussianNoise(scale=rl.ConstantSchedule(value=panel.noise)),
        actor=panel.actor,
        critic=panel.critic,
        actor_optimizer=rl.AdamParameters(learning_rate=panel.learning_rate),
        critic_optimizer=rl.AdamParameters(learning_rate=panel.learning_rate),
    )
    return off_policy_experiment(panel, agent, marks=MARKS, heatup=25_000)
