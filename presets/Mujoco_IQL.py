"""Implicit Q-learning on a MuJoCo task from a data set, with the settings of its paper."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.offline_tasks import MujocoDataPanel, from_data


@dataclass(frozen=True, kw_only=True)
class Panel(MujocoDataPanel):
    """Settings to change with -cp."""

    expectile: float = 0.7
    """The nearer to 1, the nearer values are to those of the best action in the data."""
    temperature: float = 3.0
    """The inverse temperature: how strongly advantages weigh cloned actions."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """IQL on a MuJoCo task."""
    agent = rl.IQLAgentParameters(
        algorithm=rl.IQLAlgorithmParameters(
            discount=panel.discount, expectile=panel.expectile, temperature=panel.temperature
        ),
        learning=panel.learning,
        memory=panel.replay_memory,
        policy=rl.PolicyParameters(torso=panel.torso),
        critic=rl.CriticParameters(torso=panel.torso),
        value=panel.torso,
        policy_optimizer=panel.adam,
        critic_optimizer=panel.adam,
        value_optimizer=panel.adam,
        normalise_observations=panel.normalise,
    )
    return from_data(panel, agent, rl.MujocoParameters(level=panel.level))
