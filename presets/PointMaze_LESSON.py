"""LESSON finds the way through mazes: sub-goals are changes of slow features that it learns.

All else is as in PointMaze_HIRO without its correction. `features=random` is the control.
"""

from dataclasses import dataclass
from typing import ClassVar, Literal

import coach_rl as rl
from coach_rl.presets.goal_hierarchies import POINT_MAZES
from coach_rl.presets.hiro_hierarchies import HIROPanel, hiro_experiment, point_maze_learner

VALIDATION = {
    # Five seeds had -28 to -49 after 30,000 steps; an episode that never gets there costs 200.
    "point_maze_u": rl.ValidationParameters(reward=-60.0, within=rl.EnvironmentSteps(60_000))
}
"""Acceptance tests, by maze."""


@dataclass(frozen=True, kw_only=True)
class Panel(HIROPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = POINT_MAZES
    level: str = "point_maze_u"
    hierarchy: Literal["lesson", "none"] = "lesson"
    """lesson: two levels. none: TD3 acts alone, all else equal."""
    features: Literal["slow", "random"] = "slow"
    """slow: the features of sub-goals are learned. random: they are those of a network that stays
    as it is initialised, all else equal."""
    recomputed: bool = True
    """If True, stored rewards are recomputed as the features change; False is the authors' way."""
    correction: bool = False
    """HIRO's correction, which features that change rule out."""
    steps: int = 100_000
    size: int = 2
    """Number of features."""
    reach: float = 20.0
    """Largest change of a feature in a sub-goal."""
    feature_learning_rate: float = 1e-4
    """Learning rate of the features."""
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
    farthest = 200.0  # the bounds of features in the authors' program: none, in effect
    features = rl.LESSONGoalSpace(
        key="observation",
        low=(-farthest,) * panel.size,
        high=(farthest,) * panel.size,
        threshold=(0.0,) * panel.size,  # never reached: a sub-goal holds for its whole time
        relative=True,
        reach=(panel.reach,) * panel.size,
        observed="relative",
        reward="dense",
        ahead=panel.horizon,
        every=1,
        optimizer=rl.AdamParameters(learning_rate=panel.feature_learning_rate),
        learns_until=None if panel.features == "slow" else 0,
        recomputed=panel.recomputed,
    )
    return hiro_experiment(
        panel,
        panel.world(),
        point_maze_learner(panel),
        subgoals=features,
        reward_scale=panel.reward_scale,
        schedule=panel.schedule(heatup=panel.heatup),
        validation=VALIDATION.get(panel.level),
    )
