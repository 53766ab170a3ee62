"""TD3 on tasks of the DeepMind Control Suite, from state, with the settings of its paper."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.control_tasks import Marks, OffPolicyControlPanel

MARKS: Marks = {"cheetah-run": (500.0, 500_000)}
"""Evaluation reward to reach, and environment steps by which, by task."""


@dataclass(frozen=True, kw_only=True)
class Panel(OffPolicyControlPanel):
    """Settings to change with -cp."""

    noise: float = 0.1
    """Standard deviation of the exploration noise, in half-ranges of the action."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """TD3 on a task of the DeepMind Control Suite. Needs the extra `dm_control`."""
    agent = rl.TD3AgentParameters(
        algorithm=rl.TD3AlgorithmParameters(discount=panel.discount),
        learning=panel.learning,
        memory=rl.ReplayMemoryParameters(capacity=panel.memory),
        exploration=rl.GaussianNoise(scale=rl.ConstantSchedule(value=panel.noise)),
        actor=rl.ActorParameters(torso=panel.torso),
        critic=rl.CriticParameters(torso=panel.torso),
        actor_optimizer=panel.optimizer,
        critic_optimizer=panel.optimizer,
    )
    return panel.experiment(agent, MARKS)
