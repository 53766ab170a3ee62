"""Hierarchical actor-critic finds the way through mazes, with two or three levels; or one agent.

With `hierarchy=graph` the top level plans way-points, with `hierarchy=graph_below` the level below
a top level that learns.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

import coach_rl as rl
from coach_rl.presets.goal_hierarchies import POINT_MAZES, HACPanel, SubGoalLearning, hac_experiment

HORIZONS = {2: (20, 20), 3: (10, 8, 8)}
"""Decisions of a level for one of the level above, top first, by number of levels."""
HORIZONS_GRAPH_BELOW = (10, 5, 15)
"""The same of a learner, a graph and a learner: some metres, half a metre and a step at a time."""

VALIDATION = {
    "point_maze_medium": rl.ValidationParameters(reward=-100.0, within=rl.EnvironmentSteps(200_000))
}
"""Acceptance tests, by maze."""


@dataclass(frozen=True, kw_only=True)
class Panel(HACPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = POINT_MAZES
    level: str = "point_maze_medium"
    min_path: int | None = None
    """Steps from cell to cell between start and goal at least; None takes the maze's own."""
    hierarchy: Literal["hac", "graph", "graph_below", "none"] = "hac"  # type: ignore[assignment] # more
    """hac: levels. graph: the top one plans way-points. graph_below: the middle one of three plans
    way-points to the sub-goals that the top one learns to choose. none: one agent acts alone, all
    else equal."""
    spacing: float | None = None
    """graph, graph_below: distance between neighbouring places, in metres. None: 2 in OGBench's
    mazes, where goals are reached within 1, and 0.5 in others."""
    steps: int = 300_000
    evaluation_interval: int = 20_000


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Push a ball from anywhere in a maze to anywhere else in it."""
    world = panel.world(**({} if panel.min_path is None else {"min_path": panel.min_path}))
    learner_on_top = panel.hierarchy == "graph_below"
    if learner_on_top and panel.levels != 3:
        raise rl.ParameterError(
            "hierarchy=graph_below has three levels, a learner, a graph and a learner; got levels="
            f"{panel.levels}; set levels=3, or hierarchy=graph, whose graph is the top level"
        )
    horizons = HORIZONS_GRAPH_BELOW if learner_on_top else HORIZONS[panel.levels]
    subgoals = [
        _within_reach(world.task, math.prod(horizons[depth:])) for depth in range(1, panel.levels)
    ]
    # A learner on top decides seldom, and its graph finds ways soon.
    upper = SubGoalLearning(candidates=64, starts=200 if learner_on_top else 1_000)
    planner = None
    planner_at = int(learner_on_top)
    if learner_on_top or panel.hierarchy == "graph":
        spacing = panel.spacing
        if spacing is None:
            spacing = 2.0 if isinstance(world.task, rl.OGBenchPointMaze) else 0.5
        planner = rl.GraphAgentParameters(places=rl.GridPlaces(spacing=spacing))
        # Places of the graph, observed relative to the ball: a step learned for one works for all.
        subgoals[planner_at] = replace(
            subgoals[planner_at], relative=False, reach=None, observed="relative"
        )
    return hac_experiment(
        panel,
        world,
        horizons=horizons,
        subgoals=tuple(subgoals),
        upper=upper,
        validation=VALIDATION.get(panel.level),
        planner=planner,
        planner_at=planner_at,
    )


def _within_reach(maze: rl.GoalTask, steps: int) -> rl.GoalSpace:
    """Sub-goals as ways to go, as far along each axis as the ball gets in so many steps."""
    assert isinstance(maze, rl.PointMaze | rl.OGBenchPointMaze | rl.RoboticsPointMaze)
    space = maze.subgoal_space
    reach = np.minimum(maze.farthest_step * steps, np.subtract(space.high, space.low))
    return replace(space, relative=True, reach=tuple(reach.tolist()))
