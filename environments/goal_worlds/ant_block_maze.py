"""Push, fall and four rooms with sparse rewards, half as wide as HIRO's, calm or noisy.

Geometry, goals, radius and time limits are those in the authors' code of LESSON and HESS (Li et al.
2021, "Learning Subgoal Representations with Slow Dynamics"; 2022, "Active Hierarchical Exploration
with Stable Subgoal Representation Learning"), which HLPS took over (Wang et al. 2024,
"Probabilistic Subgoal Representations for Hierarchical Reinforcement Learning").
"""

from typing import ClassVar

import numpy as np

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.records import FloatArray
from coach_rl.environments.goal_worlds.ant_sparse_maze import SparseAntMaze
from coach_rl.environments.goal_worlds.maze_map import (
    ANT_FALL_SPARSE,
    ANT_FOUR_ROOMS_SPARSE,
    ANT_PUSH_SPARSE,
)

_RADIUS = 1.5
_HIGL_NOISE = 0.05
_ABOVE_FLOOR = 0.5
"""Height of a goal of Ant Fall above the floor, in metres."""


@parameter_class
class AntFourRoomsSparse(SparseAntMaze):
    """HESS's Ant FourRooms: from one of four rooms to the opposite one, 18 m by 18 m."""

    max_episode_steps: ClassVar[int | None] = 1000

    frame_skip: int = 10
    gear: Positive[float] = 16.0
    """Torque of a motor at an action of 1, in newton metres; Gymnasium's ant has 150."""
    maze: tuple[str, ...] = ANT_FOUR_ROOMS_SPARSE
    """Rows of the map, see `MazeMap`."""
    cell_size: Positive[float] = 2.0
    """Side of a cell, in metres."""
    block_height: Positive[float] = 1.0
    """Height of walls and blocks, and depth of gaps, in metres."""
    goal_radius: Positive[float] = _RADIUS
    """Distance at which the goal is reached, in metres."""
    reward_radius: Positive[float] = _RADIUS
    """Distance from which on a step is worth 0 instead of -1, in metres."""


@parameter_class
class AntPushSparse(AntFourRoomsSparse):
    """HESS's Ant Push: HIRO's in half the size, with sparse rewards."""

    max_episode_steps: ClassVar[int | None] = 500
    block_moves: ClassVar[tuple[str, ...]] = ("x", "y")
    block_mass: ClassVar[float] = 0.0002

    maze: tuple[str, ...] = ANT_PUSH_SPARSE
    """Rows of the map, see `MazeMap`."""
    cell_size: Positive[float] = 4.0
    """Side of a cell, in metres."""
    block_height: Positive[float] = 2.0
    """Height of walls and blocks, and depth of gaps, in metres."""

    @property
    def floor(self) -> str:
        """Signs of the cells in which a goal of training may lie: where the block starts, too."""
        return ".SGB"


@parameter_class
class AntFallSparse(AntPushSparse):
    """HESS's Ant Fall: HIRO's in half the size, with sparse rewards; a goal is (x, y, z)."""

    block_moves: ClassVar[tuple[str, ...]] = ("y", "z")
    block_mass: ClassVar[float] = 0.001
    goal_size: ClassVar[int] = 3

    maze: tuple[str, ...] = ANT_FALL_SPARSE
    """Rows of the map, see `MazeMap`."""

    def target(self, rng: np.random.Generator) -> FloatArray:
        """Draw a goal on the raised floor, [3]."""
        return np.append(super().target(rng), self.floor_height + _ABOVE_FLOOR)


@parameter_class
class AntPushStochastic(AntPushSparse):
    """Ant Push with the noise of HIGL's stochastic mazes."""

    position_noise: NonNegative[float] = _HIGL_NOISE
    """Standard deviation of a push along x and y that the ant gets after each step, in metres."""


@parameter_class
class AntFallStochastic(AntFallSparse):
    """Ant Fall with the noise of HIGL's stochastic mazes."""

    position_noise: NonNegative[float] = _HIGL_NOISE
    """Standard deviation of a push along x and y that the ant gets after each step, in metres."""
