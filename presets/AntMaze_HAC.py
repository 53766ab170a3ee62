"""Hierarchical actor-critic walks an ant through mazes with sparse rewards; or one agent does.

Sub-goals are distances to go. The lowest of several levels observes this distance and not its own
position; an agent alone observes both.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import coach_rl as rl
from coach_rl.presets.goal_hierarchies import (
    ANT_MAZES,
    WITHOUT_POSITION,
    HACPanel,
    SubGoalLearning,
    hac_experiment,
)

HORIZONS = {2: (24, 25), 3: (10, 8, 8)}
"""Decisions of a level for one of the level above, top first, by number of levels."""


@dataclass(frozen=True, kw_only=True)
class Panel(HACPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = ANT_MAZES
    level: str = "ant_maze_u24"
    num_envs: int = 16
    steps: int = 1_000_000
    reach: float = 8.0
    """Largest distance of a sub-goal along x and y, in metres."""
    discount: float = 0.99
    batch: int = 512
    updates_per_step: float = 0.5
    upper_updates_per_step: float = 2.0
    layers: tuple[int, ...] = (256, 256)
    evaluation_interval: int = 50_000

    @property
    def torso(self) -> rl.TorsoParameters:
        """The hidden layers."""
        return replace(super().torso, keys=("observation", "desired_goal"))


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Walk an ant from one end of a maze to the other."""
    world = panel.world()
    places = world.task.goal_space
    ways = replace(places, relative=True, reach=(panel.reach,) * places.size, observed="relative")
    return hac_experiment(
        panel,
        world,
        horizons=HORIZONS[panel.levels],
        subgoals=(ways,) * (panel.levels - 1),
        upper=SubGoalLearning(candidates=64),
        validation=None,
        hidden=WITHOUT_POSITION,
        evaluation_world=panel.evaluation_world(),
    )
