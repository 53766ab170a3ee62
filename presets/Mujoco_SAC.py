"""SAC on the MuJoCo tasks, with the settings of Tianshou's 2021 MuJoCo benchmark."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.mujoco_tasks import OffPolicyPanel, off_policy_experiment

MARKS = {
    "half_cheetah": (6000.0, 300_000),
    "hopper": (1500.0, 500_000),
    "inverted_pendulum": (950.0, 50_000),
    "reacher": (-6.0, 50_000),
}
"""Evaluation reward to reach, and environment steps by which, by task."""


@dataclass(frozen=True, kw_only=True)
class Panel(OffPolicyPanel):
    """Settings to change with -cp."""

    learning_rate: float = 1e-3
    """Learning rate of actor and critics."""
    temperature: float | None = 0.2
    """Fixed temperature, the weight of the entropy in nats; None learns it."""
    temperature_learning_rate: float = 3e-4
    """Learning rate of a learned temperature."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """SAC on a MuJoCo task."""
    agent = rl.SACAgentParameters(
        algorithm=rl.SACAlgorithmParameters(
            discount=panel.task_discount,
            initial_temperature=1.0 if panel.temperature is None else panel.temperature,
            learn_temperature=panel.temperature is None,
        ),
        learning=panel.learning,
        memory=panel.replay_memory,
        actor=panel.actor,
        critic=panel.critic,
        actor_optimizer=rl.AdamParameters(learning_rate=panel.learning_rate),
        critic_optimizer=rl.AdamParameters(learning_rate=panel.learning_rate),
        temperature_optimizer=rl.AdamParameters(learning_rate=panel.temperature_learning_rate),
    )
    return off_policy_experiment(panel, agent, marks=MARKS, heatup=10_000)
