"""Point mazes whose agents learn to reach goals from a data set, for presets."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import coach_rl as rl
from coach_rl.presets.offline_tasks import DataPanel

TASKS = (((1, 1), (6, 6)), ((6, 1), (1, 6)), ((5, 3), (4, 2)), ((6, 5), (6, 1)), ((2, 6), (1, 1)))
"""Cells of start and goal of OGBench's five tasks in the medium maze: row and column."""


@dataclass(frozen=True, kw_only=True)
class MazeDataPanel(DataPanel):
    """Settings of presets that learn to reach goals in a point maze from data."""

    LEVELS: ClassVar = ("point_maze_medium", "point_maze_large", "point_maze_u")
    level: str = "point_maze_medium"
    """The maze of the data."""
    data: str = "data:maze-stitch"
    task: Literal[0, 1, 2, 3, 4, 5] = 0
    """Start and goal in evaluations: 1 to 5 for the tasks of OGBench in the medium maze; 0: any."""
    layers: tuple[int, ...] = (256, 256, 256)
    discount: float = 0.99
    """Discount factor, also of the steps to goals of values in a trajectory."""
    learning_rate: float = 3e-4
    """Learning rate of all networks."""

    @property
    def torso(self) -> rl.TorsoParameters:
        """The hidden layers, with layer normalisation."""
        return rl.TorsoParameters(
            middleware=self.layers, activation="relu", orthogonal=False, layer_norm=True
        )

    @property
    def adam(self) -> rl.AdamParameters:
        """The optimiser of all networks."""
        return rl.AdamParameters(learning_rate=self.learning_rate)

    @property
    def world(self) -> "rl.GoalWorldParameters":
        """The maze, for training and evaluations."""
        if self.level not in self.LEVELS:
            raise rl.UnknownNameError(
                "level", self.level, self.LEVELS, "`coach describe PRESET` lists them"
            )
        return rl.GoalWorldParameters(level=self.level)

    @property
    def evaluation_world(self) -> "rl.GoalWorldParameters | None":
        """The maze with start and goal of the task; ParameterError where that has another maze.

        None without a task.
        """
        if not self.task:
            return None
        if self.level != "point_maze_medium":
            raise rl.ParameterError(
                f"task={self.task} is one of the medium maze, and level is '{self.level}'; leave "
                "task at 0"
            )
        maze = task_maze(self.level, self.task)
        return rl.GoalWorldParameters(level=self.level, kwargs={"maze": maze})


def actor_goals(random: float) -> "rl.GoalShares":
    """Goals of a policy.

    Args:
        random: Share of those from other trajectories; the rest is later in the same one.
    """
    return rl.GoalShares(current=0.0, trajectory=1 - random, random=random, geometric=False)


def task_maze(level: str, task: int) -> tuple[str, ...]:
    """The map of a maze in which episodes have start and goal of a task.

    Args:
        level: The maze.
        task: Number of the task, from 1.
    """
    start, goal = TASKS[task - 1]
    world = rl.GoalWorldParameters(level=level).task
    assert isinstance(world, rl.PointMaze)
    rows = [list(row) for row in world.maze]
    rows[start[0]][start[1]] = "S"
    rows[goal[0]][goal[1]] = "G"
    return tuple("".join(row) for row in rows)
