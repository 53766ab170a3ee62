"""Data sets of point mazes, by the recipe of OGBench (Park et al. 2025, arXiv:2410.20092).

A scripted solver pushes the ball to the next cell on the shortest way to a goal, along the unit
vector to the middle of that cell, with Gaussian noise on each action. Rewards are those of the
goals in the data: 0 for a decision that ends at the goal, else -1; nothing is terminal.

Differences from OGBench: the ball has inertia and feels walls, cells are 1 m wide and goals have
a radius of 0.45 m; `explore`, which OGBench has for ants, is driven by the same noise as the rest.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Literal

import numpy as np

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.interfaces import Environment
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.records import Array, FloatArray, IntArray
from coach_rl.core.seeding import generator, integer_seed
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.goal_worlds.maze_map import Cell
from coach_rl.environments.goal_worlds.parameters import GOAL_WORLDS, GoalWorldParameters
from coach_rl.environments.goal_worlds.point_maze import PointMaze
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.memories.batches import (
    ACTIONS,
    DURATIONS,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    REWARDS,
    TERMINATED,
    TRUNCATED,
)

Kind = Literal["navigate", "stitch", "explore"]

TOGETHER = 50
"""Episodes that are simulated together; the numbers of a data set depend on it."""
_STITCHED_CELLS = 4
_STEPS_OF_DIRECTION = 10


@dataclass(frozen=True)
class Recipe:
    """Size of a data set."""

    episodes: int
    """Number of episodes."""
    steps: int
    """Steps of each."""


RECIPES: Mapping[str, Recipe] = MappingProxyType(
    {
        "navigate": Recipe(1_000, 1_001),
        "stitch": Recipe(5_000, 201),
        "explore": Recipe(2_000, 501),
    }
)
"""Sizes of the data sets, by kind: about a million transitions each."""


@parameter_class
class MazeDataParameters:
    """A data set of a point maze."""

    kind: Kind
    """navigate: to one goal after the other, in long episodes. stitch: to a goal that is four cells
    away, and to stay there. explore: in random directions, each for 10 steps (required)."""
    level: str = "point_maze_medium"
    """The maze, one of the goal worlds whose class is `PointMaze`."""
    episodes: Positive[int] | None = None
    """Number of episodes; None: that of `RECIPES`."""
    steps: Positive[int] | None = None
    """Steps of each episode; None: that of `RECIPES`."""
    noise: NonNegative[float] = 0.5
    """Standard deviation of the noise on actions in [-1, 1]; OGBench's for point mazes."""

    @property
    def world(self) -> GoalWorldParameters:
        """The maze, whose episodes end after `steps` alone; ConfigurationError for another world.

        Its goals are replaced by those of the data, so that only starts are drawn by it.
        """
        known = [name for name, task in GOAL_WORLDS.items() if issubclass(task, PointMaze)]
        if self.level not in known:
            raise ConfigurationError(
                f"data of mazes are made in a point maze, one of {', '.join(known)}; got "
                f"'{self.level}'"
            )
        steps = self.steps or RECIPES[self.kind].steps
        return GoalWorldParameters(
            level=self.level, kwargs={"terminate": False}, max_episode_steps=steps, threads=1
        )


@dataclass(frozen=True)
class MazeSolver:
    """Shortest ways through a maze, from cell to neighbouring cell."""

    maze: PointMaze
    """The maze."""

    @cached_property
    def cells(self) -> tuple[Cell, ...]:
        """The C cells without walls."""
        return self.maze.map.cells(".SG")

    @cached_property
    def centres(self) -> FloatArray:
        """The middle of each cell, [C, 2] in metres."""
        return np.array([self.maze.place(cell) for cell in self.cells])

    @cached_property
    def distances(self) -> IntArray:
        """The number of steps from each cell to each, [C, C]."""
        found = [self.maze.map.distances(cell) for cell in self.cells]
        return np.array([[away[cell] for cell in self.cells] for away in found])

    @cached_property
    def following(self) -> IntArray:
        """The next cell on the way from each cell (first axis) to each other one, [C, C]."""
        # [C, C, C]: from a cell to a goal, is it one step less from this neighbour?
        is_neighbour = self.distances == 1
        is_nearer = self.distances[None] == self.distances[:, :, None] - 1
        following: IntArray = (is_neighbour[:, None] & is_nearer).argmax(axis=2)
        np.fill_diagonal(following, np.arange(len(self.cells)))
        return following

    @cached_property
    def crossings(self) -> IntArray:
        """The cells that are no straight corridor between two walls, where goals of data lie."""
        rows = self.maze.maze
        chosen = []
        for place, (row, column) in enumerate(self.cells):
            up_down = [rows[row - 1][column] != "#", rows[row + 1][column] != "#"]
            sides = [rows[row][column - 1] != "#", rows[row][column + 1] != "#"]
            is_corridor = (all(up_down) and not any(sides)) or (all(sides) and not any(up_down))
            if not is_corridor:
                chosen.append(place)
        return np.array(chosen, np.int64)

    def cells_at(self, places: FloatArray) -> IntArray:
        """The cells nearest to places [R, 2], [R]."""
        apart = places[:, None] - self.centres  # [R, C, 2]
        nearest: IntArray = np.square(apart).sum(axis=2).argmin(axis=1)
        return nearest

    def directions(self, places: FloatArray, goals: FloatArray) -> FloatArray:
        """Unit vectors [R, 2] along the way from places [R, 2] to goals [R, 2]."""
        here = self.cells_at(places)
        there = self.cells_at(goals)
        is_there = (here == there)[:, None]
        target = np.where(is_there, goals, self.centres[self.following[here, there]])
        return _unit(target - places)


class _Goals:
    """Goals of the episodes that are simulated together, and the directions to push in.

    Args:
        params: The data set.
        solver: Ways through its maze.
        rng: Draws goals and directions.
    """

    def __init__(
        self, params: MazeDataParameters, solver: MazeSolver, rng: np.random.Generator
    ) -> None:
        self._kind = params.kind
        self._solver = solver
        self._rng = rng

    def begin(self, places: FloatArray) -> None:
        """Draw the goals of episodes that start at places [R, 2]."""
        self.goals = self._drawn(self._solver.cells_at(places))
        """[R, 2] in metres."""
        self._directions = np.zeros_like(places)

    def directions(self, places: FloatArray, step: int) -> FloatArray:
        """Directions to push in at a step of the episodes, unit vectors [R, 2]."""
        if self._kind != "explore":
            return self._solver.directions(places, self.goals)
        if step % _STEPS_OF_DIRECTION == 0:
            self._directions = _unit(self._rng.standard_normal(places.shape))
        return self._directions

    def move_on(self, places: FloatArray, reached: Array) -> None:
        """Draw new goals where these were reached, [R] bool; only `navigate` does."""
        if self._kind == "navigate" and reached.any():
            new = self._drawn(self._solver.cells_at(places))
            self.goals = np.where(reached[:, None], new, self.goals)

    def _drawn(self, cells: IntArray) -> FloatArray:
        """New goals [R, 2] for episodes in cells [R]."""
        solver = self._solver
        if self._kind == "stitch":
            found = []
            for cell in cells:
                near = np.flatnonzero(solver.distances[cell] == _STITCHED_CELLS)
                found.append(self._rng.choice(near) if len(near) else cell)
            chosen = np.array(found)
        else:
            chosen = self._rng.choice(solver.crossings, len(cells))
        size = solver.maze.noise * solver.maze.cell_size
        goals: FloatArray = solver.centres[chosen]
        return goals + self._rng.uniform(-size, size, goals.shape)


def maze_data(params: MazeDataParameters, seed: int) -> tuple[Recorded, EnvironmentSpaces]:
    """The transitions of a data set, and their spaces; the same for the same seed.

    Args:
        params: The data set.
        seed: For starts, goals and noise.
    """
    world = params.world
    maze = world.task
    assert isinstance(maze, PointMaze)
    recipe = RECIPES[params.kind]
    wanted = params.episodes or recipe.episodes
    steps = params.steps or recipe.steps
    solver = MazeSolver(maze)
    rng = generator(seed, "maze data")
    goals = _Goals(params, solver, rng)
    simulators = world.build(num_envs=TOGETHER)
    episodes: list[Mapping[str, Array]] = []
    try:
        spaces = simulators.spaces
        seeds = [integer_seed(seed, "maze data", str(row)) for row in range(TOGETHER)]
        now: Mapping[str, Array] = simulators.reset(seeds).observation
        while len(episodes) < wanted:
            recorded, now = _episodes(simulators, maze, goals, now, steps, params.noise, rng)
            kept = min(TOGETHER, wanted - len(episodes))
            episodes += [
                {path: column[:, row] for path, column in recorded.items()} for row in range(kept)
            ]
    finally:
        simulators.close()
    return Recorded.of(episodes), spaces


def _episodes(
    simulators: Environment,
    maze: PointMaze,
    goals: _Goals,
    now: Mapping[str, Array],
    steps: int,
    noise: float,
    rng: np.random.Generator,
) -> tuple[dict[str, Array], Mapping[str, Array]]:
    """The columns of whole episodes, [T, R, ...] each, and the observations after their resets.

    Args:
        simulators: R mazes at the beginning of their episodes.
        maze: Their parameters.
        goals: Goals of the episodes.
        now: What the mazes show, [R, ...] each.
        steps: T.
        noise: Standard deviation of the noise on actions.
        rng: Draws the noise.
    """
    goals.begin(now["achieved_goal"])
    taken: list[dict[str, Array]] = []
    for step in range(steps):
        places = now["achieved_goal"]
        directions = goals.directions(places, step)
        noisy = directions + noise * rng.standard_normal(directions.shape)
        action = np.clip(noisy, -1, 1).astype(np.float32)
        simulators.send(action)
        answer = simulators.recv()
        after = answer.observation
        reached = maze.reached(after["achieved_goal"], goals.goals)
        transition = {
            ACTIONS: action,
            REWARDS: reached - 1.0,
            TERMINATED: np.zeros(len(action), np.bool_),
            TRUNCATED: answer.truncated.copy(),
            DURATIONS: answer.duration.copy(),
        }
        for prefix, shown in ((OBSERVATIONS, now), (NEXT_OBSERVATIONS, after)):
            transition |= {f"{prefix}{key}": values.copy() for key, values in shown.items()}
            transition[f"{prefix}{GOAL_KEY}"] = goals.goals.copy()
        taken.append(transition)
        now = {key: values.copy() for key, values in answer.first_observation.items()}
        goals.move_on(after["achieved_goal"], reached)
    return {path: np.stack([each[path] for each in taken]) for path in taken[0]}, now


def _unit(vectors: FloatArray) -> FloatArray:
    """Vectors [R, 2] of length 1; those without a length stay 0."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.maximum(lengths, 1e-6))
