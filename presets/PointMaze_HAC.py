"""Hierarchical actor-critic finds the way through mazes, with two or three levels; or one agent."""

import math
from dataclasses import replace
from typing import Literal

import numpy as np

from coach_rl.core.errors import UnknownNameError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.environments.goal_worlds import GOAL_WORLDS, GoalWorldParameters
from coach_rl.environments.goal_worlds.goal_task import GoalTask
from coach_rl.environments.goal_worlds.point_maze import PointMaze
from coach_rl.graph_managers import GraphManager, ValidationParameters
from coach_rl.presets.Pendulum_HAC import Hierarchy, Settings, UpperSettings, experiment

HORIZONS = {2: (20, 20), 3: (10, 8, 8)}
"""Decisions of a level for one of the level above, top first, by number of levels."""

VALIDATION = {
    "point_maze_medium": ValidationParameters(reward=-100.0, within=EnvironmentSteps(200_000))
}
"""Acceptance tests, by maze."""


def within_reach(maze: GoalTask, steps: int) -> GoalSpace:
    """Sub-goals as ways to go, as far along each axis as the ball gets in so many steps."""
    assert isinstance(maze, PointMaze)
    space = maze.subgoal_space
    farthest = maze.max_speed * maze.timestep * maze.frame_skip * steps
    reach = np.minimum(farthest, np.subtract(space.high, space.low))
    return replace(space, relative=True, reach=tuple(reach.tolist()))


def graph_manager(
    level: str = "point_maze_medium",
    hierarchy: Hierarchy = "hac",
    levels: Literal[2, 3] = 2,
    hindsight: bool = True,
    min_path: int | None = None,
    num_envs: int = 8,
    steps: int = 300_000,
    learning_rate: float = 1e-3,
    discount: float = 0.98,
    batch: int = 256,
    updates_per_step: float = 0.25,
    upper_updates_per_step: float = 4.0,
    epsilon: float = 0.2,
    noise: float = 0.1,
    testing_rate: float = 0.3,
    layers: tuple[int, ...] = (128, 128, 128),
    evaluation_interval: int = 20_000,
) -> GraphManager:
    """Push a ball from anywhere in a maze to anywhere else in it.

    Args:
        level: point_maze_u, point_maze_medium, point_maze_large or point_maze_four_rooms.
        hierarchy: hac; none is one agent that acts alone, all else equal.
        levels: Levels of the hierarchy.
        hindsight: Learn from other goals as well; False is the control, all else equal.
        min_path: Steps from cell to cell between start and goal at least; None: the maze's own.
        num_envs: Environments in parallel.
        steps: Environment steps to train for.
        learning_rate: Adam's step size, of actors and critics.
        discount: Gamma, per decision of a level.
        batch: Transitions per gradient step.
        updates_per_step: Gradient steps per environment step, at the lowest level.
        upper_updates_per_step: Gradient steps per decision of the level above it.
        epsilon: Share of random actions while exploring, at the lowest level.
        noise: Deviation of the others, in halves of the action range.
        testing_rate: Share of sub-goals that are tested.
        layers: Sizes of the hidden layers.
        evaluation_interval: Environment steps between evaluations.
    """
    mazes = [name for name in GOAL_WORLDS if name.startswith("point_maze")]
    if level not in mazes:
        raise UnknownNameError("point maze", level, mazes)
    world = GoalWorldParameters(
        level=level, kwargs={} if min_path is None else {"min_path": min_path}
    )
    horizons = HORIZONS[levels]
    return experiment(
        world,
        Settings(
            hindsight=hindsight,
            learning_rate=learning_rate,
            discount=discount,
            batch=batch,
            updates_per_step=updates_per_step,
            upper_updates_per_step=upper_updates_per_step,
            upper=UpperSettings(candidates=64),
            epsilon=epsilon,
            noise=noise,
            testing_rate=testing_rate,
            layers=layers,
        ),
        horizons=horizons if hierarchy == "hac" else (),
        subgoals=tuple(
            within_reach(world.task, math.prod(horizons[depth:])) for depth in range(1, levels)
        ),
        num_envs=num_envs,
        steps=steps,
        evaluation_interval=evaluation_interval,
        validation=VALIDATION.get(level),
    )
