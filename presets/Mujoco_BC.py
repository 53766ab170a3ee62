"""Behaviour cloning on a MuJoCo task: a policy that acts as the data do."""

from dataclasses import dataclass
from typing import Literal

import coach_rl as rl
from coach_rl.presets.offline_tasks import MujocoPolicyPanel, from_data


@dataclass(frozen=True, kw_only=True)
class Panel(MujocoPolicyPanel):
    """Settings to change with -cp."""

    updates: int = 50_000
    """Gradient updates from the data."""
    loss: Literal["likelihood", "squared"] = "likelihood"
    """likelihood: of the data's actions. squared: the distance of the policy's mean from them."""


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Behaviour cloning on a MuJoCo task."""
    agent = rl.BCAgentParameters(
        loss=panel.loss,
        learning=panel.learning,
        memory=panel.replay_memory,
        policy=rl.PolicyParameters(torso=panel.torso),
        optimizer=panel.adam,
        normalise_observations=panel.normalise,
    )
    return from_data(panel, agent, rl.MujocoParameters(level=panel.level))
