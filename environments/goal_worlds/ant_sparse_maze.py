"""The ant mazes with sparse rewards on which methods with graphs of sub-goals are compared.

Geometry, starts, goals, thresholds and time limits are those in the authors' code of DHRL (Lee et
al. 2022, "DHRL: A Graph-Based Approach for Long-Horizon and Sparse Hierarchical Reinforcement
Learning") and BEAG (Yoon et al. 2024, "Breadth-First Exploration on Adaptive Grid for Reinforcement
Learning"), which NGTE and SSE took over.
"""

from typing import ClassVar

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.environments.goal_worlds.ant_maze import MazeOfAnAnt
from coach_rl.environments.goal_worlds.maze_map import (
    ANT_COMPLEX,
    ANT_CORRIDOR,
    ANT_PI,
    ANT_S,
    ANT_U,
    ANT_W,
)
from coach_rl.environments.mujoco.engine import mujoco

_ROUGH = (2.0, 0.1, 0.002)
"""Friction of the bottleneck's walls: sliding, torsional, rolling."""


@parameter_class
class SparseAntMaze(MazeOfAnAnt):
    """An ant walks to a place in a maze and is rewarded for nothing but being there.

    In training a goal lies anywhere on the free floor; in evaluations in the middle of a cell `G`
    of the map. An episode succeeds within `goal_radius`, rewards ask for more: `reward_radius`.
    """

    goal_size: ClassVar[int] = 2

    reward_radius: Positive[float] = 0.5
    """Distance from which on a step is worth 0 instead of -1, in metres."""

    def __post_init__(self) -> None:
        super().__post_init__()
        name = type(self).__name__
        require(
            self.reward_radius <= self.goal_radius,
            f"{name}.reward_radius must be at most goal_radius = {self.goal_radius:g}, got "
            f"{self.reward_radius}",
        )
        require(len(self.map.cells("G")) > 0, f"{name}.maze must have goals 'G', got {self.maze}")

    @property
    def floor(self) -> str:
        """Signs of the cells in which a goal of training may lie."""
        return ".SG"

    @property
    def goal_space(self) -> GoalSpace:
        """The goals of the task: places in the maze, reached within `reward_radius`."""
        return self._places("achieved_goal", None, self.reward_radius)

    def target(self, rng: np.random.Generator) -> FloatArray:
        """Draw a goal, [2]."""
        cells = self.map.cells("G" if self.targets == "evaluation" else self.floor)
        middle = self.place(cells[rng.integers(len(cells))])
        if self.targets == "evaluation":
            return middle
        return middle + rng.uniform(-0.5, 0.5, 2) * self.cell_size

    def _worth(self, achieved_goal: Array, desired_goal: Array, success: BoolArray) -> FloatArray:
        del success  # which asks for less
        distance = self.distance(achieved_goal, desired_goal)
        if self.reward_type == "dense":
            return -distance
        return np.where(distance <= self.reward_radius, 0.0, -1.0)


@parameter_class
class AntMazeU24(SparseAntMaze):
    """DHRL's AntMaze: a U of 24 m by 24 m."""

    max_episode_steps: ClassVar[int | None] = 600

    maze: tuple[str, ...] = ANT_U
    """Rows of the map, see `MazeMap`."""


@parameter_class
class AntMazeU12(SparseAntMaze):
    """DHRL's AntMazeSmall: a U of 12 m by 12 m."""

    max_episode_steps: ClassVar[int | None] = 600

    maze: tuple[str, ...] = ANT_U
    """Rows of the map, see `MazeMap`."""
    cell_size: Positive[float] = 4.0
    """Side of a cell, in metres."""
    block_height: Positive[float] = 2.0
    """Height of walls and blocks, and depth of gaps, in metres."""
    goal_radius: Positive[float] = 2.5
    """Distance at which the goal is reached, in metres."""


@parameter_class
class AntMazeS(SparseAntMaze):
    """BEAG's AntMazeS: two bends, 40 m by 40 m."""

    max_episode_steps: ClassVar[int | None] = 1000

    maze: tuple[str, ...] = ANT_S
    """Rows of the map, see `MazeMap`."""


@parameter_class
class AntMazeW(SparseAntMaze):
    """BEAG's AntMazeW: a way around three sides, with a blind alley inside, 40 m by 40 m."""

    max_episode_steps: ClassVar[int | None] = 1000

    maze: tuple[str, ...] = ANT_W
    """Rows of the map, see `MazeMap`."""


@parameter_class
class AntMazePi(SparseAntMaze):
    """BEAG's AntMazeP: up one leg of a Pi and down the other, 40 m by 40 m."""

    max_episode_steps: ClassVar[int | None] = 1000

    maze: tuple[str, ...] = ANT_PI
    """Rows of the map, see `MazeMap`."""


@parameter_class
class AntMazeBottleneck(SparseAntMaze):
    """DHRL's AntMazeBottleneck: the U of 24 m, with a gap of 1.6 m in the middle of the way."""

    max_episode_steps: ClassVar[int | None] = 600

    maze: tuple[str, ...] = ANT_U
    """Rows of the map, see `MazeMap`."""
    more_walls: tuple[tuple[float, float, float, float], ...] = (
        (13.5, 8.0, 3.8, 2.0),
        (18.5, 8.0, 3.0, 2.0),
    )
    """Walls that are no whole cells: x and y of the middle, extent along x and y, in metres."""

    def spec(self) -> mujoco.MjSpec:
        """The maze, with walls of more friction than its floor."""
        spec = super().spec()
        for geom in spec.worldbody.geoms:
            if geom.type == mujoco.mjtGeom.mjGEOM_BOX:
                geom.friction = _ROUGH
        return spec


@parameter_class
class AntGaps(AntMazeBottleneck):
    """A corridor with three gaps like the bottleneck's, of no paper: for practice.

    In the bottleneck an ant walks 23 m before its first try to pass, here 2.5 m, and nothing tempts
    it to try walls.
    """

    maze: tuple[str, ...] = ANT_CORRIDOR
    """Rows of the map, see `MazeMap`."""
    cell_size: Positive[float] = 4.0
    """Side of a cell, in metres."""
    block_height: Positive[float] = 2.0
    """Height of walls and blocks, and depth of gaps, in metres."""
    goal_radius: Positive[float] = 2.5
    """Distance at which the goal is reached, in metres."""
    more_walls: tuple[tuple[float, float, float, float], ...] = tuple(
        (side, ahead, 1.2, 2.0) for ahead in (3.5, 8.5, 13.5) for side in (-1.4, 1.4)
    )
    """Walls that are no whole cells: x and y of the middle, extent along x and y, in metres."""


@parameter_class
class AntMazeComplex(SparseAntMaze):
    """DHRL's AntMazeComplex: rooms and blind alleys, 56 m by 56 m."""

    max_episode_steps: ClassVar[int | None] = 2000

    maze: tuple[str, ...] = ANT_COMPLEX
    """Rows of the map, see `MazeMap`."""
