"""ReBRAC on a MuJoCo task from a data set, with the settings of its paper for each task."""

from dataclasses import dataclass, replace
from typing import Literal

import coach_rl as rl
from coach_rl.presets.offline_tasks import MujocoDataPanel, from_data

Quality = Literal["random", "medium", "medium_replay", "medium_expert", "expert"]

PENALTIES: dict[str, dict[str, tuple[float, float]]] = {
    "half_cheetah": {
        "random": (0.001, 0.1),
        "medium": (0.001, 0.01),
        "medium_replay": (0.01, 0.001),
        "medium_expert": (0.01, 0.1),
        "expert": (0.01, 0.01),
    },
    "hopper": {
        "random": (0.001, 0.01),
        "medium": (0.01, 0.01),
        "medium_replay": (0.05, 0.5),
        "medium_expert": (0.1, 0.01),
        "expert": (0.1, 0.1),
    },
    "walker2d": {
        "random": (0.01, 0.0),
        "medium": (0.05, 0.1),
        "medium_replay": (0.05, 0.01),
        "medium_expert": (0.01, 0.01),
        "expert": (0.01, 0.5),
    },
}
"""Penalties of actor and critics by task and data, of the authors' settings for D4RL."""
USUAL = (0.01, 0.01)
"""Penalties of other tasks."""


@dataclass(frozen=True, kw_only=True)
class Panel(MujocoDataPanel):
    """Settings to change with -cp."""

    quality: Quality = "expert"
    """The kind of the data, by which penalties are chosen that are not given."""
    actor_penalty: float | None = None
    """Weight of the squared distance from the data's actions; None: that of task and data."""
    critic_penalty: float | None = None
    """Weight of that distance in the critics' targets; None: that of task and data."""
    noise: float = 0.1
    """Standard deviation of the exploration noise in the world, in half-ranges of the action."""
    batch: int = 1024
    layers: tuple[int, ...] = (256, 256, 256)
    learning_rate: float = 1e-3
    normalise: float | None = None


def graph_manager(panel: Panel) -> rl.GraphManager:
    """ReBRAC on a MuJoCo task."""
    environment = rl.MujocoParameters(level=panel.level)
    task = rl.TASKS[environment.level]
    name = next(short for short, each in rl.SHORT_NAMES.items() if issubclass(task, each))
    usual = PENALTIES.get(name, {}).get(panel.quality, USUAL)
    actor_penalty = usual[0] if panel.actor_penalty is None else panel.actor_penalty
    critic_penalty = usual[1] if panel.critic_penalty is None else panel.critic_penalty
    normalised = replace(panel.torso, layer_norm=True)
    agent = rl.ReBRACAgentParameters(
        algorithm=rl.ReBRACAlgorithmParameters(
            discount=panel.discount, actor_penalty=actor_penalty, critic_penalty=critic_penalty
        ),
        learning=panel.learning,
        memory=replace(panel.replay_memory, units=(rl.NextActionsParameters(),)),
        exploration=rl.GaussianNoise(scale=rl.ConstantSchedule(value=panel.noise)),
        actor=rl.ActorParameters(torso=panel.torso),
        critic=rl.CriticParameters(torso=normalised),
        actor_optimizer=panel.adam,
        critic_optimizer=panel.adam,
        normalise_observations=panel.normalise,
    )
    return from_data(panel, agent, environment)
