"""Two small levels on a point mass with a target, which the programs of this folder change."""

from dataclasses import dataclass
from typing import Any

import coach_rl as rl
from coach_rl.presets.panels import RunPanel

PLACES = rl.GoalSpace(
    key="achieved_goal",
    low=(-1.0, -1.0),
    high=(1.0, 1.0),
    threshold=(0.1, 0.1),
    relative=True,
    reach=(0.5, 0.5),
    observed="relative",
)
"""Goals are places at most 0.5 away."""
SMALL: dict[str, Any] = {
    "learning": rl.LearningParameters(batch=32, learning_starts=200),
    "actor": rl.ActorParameters(torso=rl.TorsoParameters(middleware=(32,))),
    "critic": rl.CriticParameters(torso=rl.TorsoParameters(middleware=(32,))),
}
"""Settings of small off-policy agents."""


@dataclass(frozen=True, kw_only=True)
class Panel(RunPanel):
    """Settings to change with -cp."""

    num_envs: int = 4
    steps: int = 20_000


def stack(
    panel: RunPanel,
    *,
    top: dict[str, Any] | None = None,
    low: dict[str, Any] | None = None,
    **changes: Any,
) -> rl.GraphManager:
    """SAC above TD3, with changed settings of the top, of the low level, of the graph."""
    above = {"name": "top", "agent": rl.SACAgentParameters(**SMALL)}
    below = {
        "name": "low",
        "agent": rl.TD3AgentParameters(**SMALL),
        "goal_space": PLACES,
        "horizon": 12,
    }
    levels = (
        rl.LevelParameters(**above | (top or {})),
        rl.LevelParameters(**below | (low or {})),
    )
    graph = {
        "levels": levels,
        "environment": rl.GoalPointMassParameters(),
        "num_envs": panel.num_envs,
        "schedule": panel.schedule(evaluation_interval=panel.steps // 4, heatup=200),
    }
    return rl.HRLGraphManager(rl.GraphParameters(**graph | changes))
