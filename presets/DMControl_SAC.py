"""SAC on tasks of the DeepMind Control Suite, from state, with the settings of its paper."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.control_tasks import Marks, OffPolicyControlPanel

MARKS: Marks = {"cheetah-run": (500.0, 500_000)}
"""Evaluation reward to reach, and environment steps by which, by task."""


@dataclass(frozen=True, kw_only=True)
class Panel(OffPolicyControlPanel):
    """Settings to change with -cp."""

    initial_temperature: float = 0.1
    """Weight of the entropy in nats at the start; it is learned. Rewards are at most 1 a step."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """SAC on a task of the DeepMind Control Suite. Needs the extra `dm_control`."""
    agent = rl.SACAgentParameters(
        algorithm=rl.SACAlgorithmParameters(
            discount=panel.discount, initial_temperature=panel.initial_temperature
        ),
        learning=panel.learning,
        memory=rl.ReplayMemoryParameters(capacity=panel.memory),
        actor=rl.ActorParameters(torso=panel.torso, log_std_bounds=(-5.0, 2.0)),
        critic=rl.CriticParameters(torso=panel.torso),
        actor_optimizer=panel.optimizer,
        critic_optimizer=panel.optimizer,
        temperature_optimizer=panel.optimizer,
    )
    return panel.experiment(agent, MARKS)
