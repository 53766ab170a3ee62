"""Two small levels on a point mass with a target, which the programs of this folder change."""

from dataclasses import dataclass
from typing import Any

import coach_rl as rl
from coach_rl.presets.panels import RunPanel, hrl

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


def stack(panel: RunPanel, **changes: Any) -> rl.GraphManager:
    """SAC above TD3; `top=` and `low=` change settings of a level."""
    top = {"name": "top", "agent": rl.SACAgentParameters(**SMALL), **changes.get("top", {})}
    low = {"name": "low", "agent": rl.TD3AgentParameters(**SMALL), **changes.get("low", {})}
    levels = (
        rl.LevelParameters(**top),
        rl.LevelParameters(**{"goal_space": PLACES, "horizon": 12} | low),
    )
    schedule = panel.schedule(evaluation_interval=panel.steps // 4, heatup=200)
    return hrl(panel, levels, rl.GoalPointMassParameters(), schedule, validation=None)
