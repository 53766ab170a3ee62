"""Hierarchical actor-critic walks an ant to places, with two or three levels; or one agent does.

The worlds of Levy et al. 2019, in the open or in four rooms; sub-goals are places with velocities.
An environment step is 15 simulator steps.
"""

from dataclasses import dataclass
from typing import ClassVar

import coach_rl as rl
from coach_rl.presets.goal_hierarchies import HACPanel, SubGoalLearning, hac_experiment

HORIZONS = {"ant_reacher": {2: 23, 3: 10}, "ant_four_rooms": {2: 27, 3: 10}}
"""Decisions of every level, by world and number of levels (Levy et al. 2019, appendix)."""

VALIDATION = {
    "ant_reacher": rl.ValidationParameters(reward=-300.0, within=rl.EnvironmentSteps(400_000))
}
"""Acceptance tests, by world."""


@dataclass(frozen=True, kw_only=True)
class Panel(HACPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = tuple(HORIZONS)
    level: str = "ant_reacher"
    num_envs: int = 16
    steps: int = 400_000
    batch: int = 512
    updates_per_step: float = 0.125
    upper_updates_per_step: float = 2.0
    epsilon: float = 0.3
    noise: float = 0.2
    evaluation_interval: int = 25_000


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Walk an ant to a place, in the open or through four rooms."""
    world = panel.world()
    return hac_experiment(
        panel,
        world,
        horizons=(HORIZONS[panel.level][panel.levels],) * panel.levels,
        subgoals=(world.task.subgoal_space,) * (panel.levels - 1),
        upper=SubGoalLearning(entropy=-5.0),
        validation=VALIDATION.get(panel.level),
    )
