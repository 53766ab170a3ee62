"""HIRO finds the way through mazes: sub-goals are how far to go next; or TD3 alone tries to.

With `hierarchy=hrac` sub-goals are kept adjacent, with `hierarchy=higl` they are near landmarks.
"""

from dataclasses import dataclass
from typing import ClassVar

import coach_rl as rl
from coach_rl.presets.goal_hierarchies import POINT_MAZES
from coach_rl.presets.hiro_hierarchies import (
    GuidedPanel,
    hiro_experiment,
    point_maze_learner,
    ways_to_go,
)

VALIDATION = {
    # The way is about 25 steps long on average; an episode that never gets there costs 200.
    "point_maze_u": rl.ValidationParameters(reward=-35.0, within=rl.EnvironmentSteps(60_000))
}
"""Acceptance tests, by maze."""


@dataclass(frozen=True, kw_only=True)
class Panel(GuidedPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = POINT_MAZES
    level: str = "point_maze_u"
    steps: int = 100_000
    reach: float = 1.5
    """Largest distance of a sub-goal along x and y, in metres."""
    cell: float = 0.25
    """HRAC, HIGL: side of the cells in which places count as one, in metres."""
    batch: int = 128
    upper_updates_per_step: float = 2.0
    noise: float = 0.2
    """Standard deviation of the exploration noise at the lowest level, in half-ranges of the
    action."""
    upper_noise: float = 0.3
    """Standard deviation of the noise on sub-goals, in half-ranges."""
    reward_scale: float = 0.1
    """Factor on the environment's rewards."""
    layers: tuple[int, ...] = (128, 128)
    memory: int = 500_000
    heatup: int = 5_000
    """Random steps at the start."""
    evaluation_interval: int = 5_000


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Push a ball from anywhere in a maze to anywhere else in it.

    A step is worth -1 until the goal is reached, and 0 there, where the episode ends.
    """
    world = panel.world()
    return hiro_experiment(
        panel,
        world,
        point_maze_learner(panel),
        subgoals=ways_to_go(world.task.subgoal_space, panel.reach),
        reward_scale=panel.reward_scale,
        schedule=panel.schedule(heatup=panel.heatup),
        guide=panel.guide(
            rl.AdjacencyParameters(cell=panel.cell, every=5_000, most_updates=2_000),
            rl.LandmarkParameters(shift=0.5, starts=10_000, longest_edge=10.0, near_goal=5.0),
        ),
        validation=VALIDATION.get(panel.level),
    )
