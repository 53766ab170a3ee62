"""Hierarchical actor-critic finds the way through mazes, with two or three levels; or one agent.

With `hierarchy=graph` the top level plans way-points.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from coach_rl import (
    EnvironmentSteps,
    GoalSpace,
    GoalTask,
    GraphAgentParameters,
    GraphManager,
    GridPlaces,
    OGBenchPointMaze,
    PointMaze,
    RoboticsPointMaze,
    ValidationParameters,
)
from coach_rl.presets.goal_hierarchies import HACPanel, SubGoalLearning, hac_experiment

HORIZONS = {2: (20, 20), 3: (10, 8, 8)}
"""Decisions of a level for one of the level above, top first, by number of levels."""

VALIDATION = {
    "point_maze_medium": ValidationParameters(reward=-100.0, within=EnvironmentSteps(200_000))
}
"""Acceptance tests, by maze."""


@dataclass(frozen=True, kw_only=True)
class Panel(HACPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = (
        "point_maze_u",
        "point_maze_medium",
        "point_maze_large",
        "point_maze_four_rooms",
        "ogbench_point_maze_medium",
        "ogbench_point_maze_large",
        "ogbench_point_maze_giant",
        "robotics_point_maze_u",
        "robotics_point_maze_medium",
        "robotics_point_maze_large",
    )
    level: str = "point_maze_medium"
    min_path: int | None = None
    """Steps from cell to cell between start and goal at least; None takes the maze's own."""
    hierarchy: Literal["hac", "graph", "none"] = "hac"  # type: ignore[assignment] # one more choice
    """hac: levels. graph: the top one plans way-points. none: one agent acts alone, all else
    equal."""
    spacing: float = 0.5
    """graph: distance between neighbouring places, in metres."""
    steps: int = 300_000
    evaluation_interval: int = 20_000


def graph_manager(panel: Panel) -> GraphManager:
    """Push a ball from anywhere in a maze to anywhere else in it."""
    world = panel.world(**({} if panel.min_path is None else {"min_path": panel.min_path}))
    horizons = HORIZONS[panel.levels]
    subgoals = [
        _within_reach(world.task, math.prod(horizons[depth:])) for depth in range(1, panel.levels)
    ]
    planner = None
    if panel.hierarchy == "graph":
        planner = GraphAgentParameters(places=GridPlaces(spacing=panel.spacing))
        subgoals[0] = replace(subgoals[0], relative=False, reach=None)  # places of the graph
    return hac_experiment(
        panel,
        world,
        horizons=horizons,
        subgoals=tuple(subgoals),
        upper=SubGoalLearning(candidates=64),
        validation=VALIDATION.get(panel.level),
        planner=planner,
    )


def _within_reach(maze: GoalTask, steps: int) -> GoalSpace:
    """Sub-goals as ways to go, as far along each axis as the ball gets in so many steps."""
    assert isinstance(maze, PointMaze | OGBenchPointMaze | RoboticsPointMaze)
    space = maze.subgoal_space
    reach = np.minimum(maze.farthest_step * steps, np.subtract(space.high, space.low))
    return replace(space, relative=True, reach=tuple(reach.tolist()))
