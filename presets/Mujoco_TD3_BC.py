"""TD3+BC on a MuJoCo task from a data set, with the settings of its paper."""

from dataclasses import dataclass

import coach_rl as rl
from coach_rl.presets.offline_tasks import MujocoDataPanel, from_data


@dataclass(frozen=True, kw_only=True)
class Panel(MujocoDataPanel):
    """Settings to change with -cp."""

    alpha: float = 2.5
    """Weight of the critic's value against the distance from the data's actions."""
    noise: float = 0.1
    """Standard deviation of the exploration noise in the world, in half-ranges of the action."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """TD3+BC on a MuJoCo task."""
    agent = rl.TD3BCAgentParameters(
        algorithm=rl.TD3BCAlgorithmParameters(discount=panel.discount, alpha=panel.alpha),
        learning=panel.learning,
        memory=panel.replay_memory,
        exploration=rl.GaussianNoise(scale=rl.ConstantSchedule(value=panel.noise)),
        actor=rl.ActorParameters(torso=panel.torso),
        critic=rl.CriticParameters(torso=panel.torso),
        actor_optimizer=panel.adam,
        critic_optimizer=panel.adam,
        normalise_observations=panel.normalise,
    )
    return from_data(panel, agent, rl.MujocoParameters(level=panel.level))
