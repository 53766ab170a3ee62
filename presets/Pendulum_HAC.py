"""Hierarchical actor-critic swings up a pendulum, with two or three levels; or one agent does.

The inverted pendulum of Levy et al. 2019 (`angle_goal_pendulum`: goals within 16 degrees of
upright, reached within 9.5 degrees and 0.6 radians per second) or Coach's (`goal_pendulum`);
1000 steps.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import coach_rl as rl
from coach_rl.presets.goal_hierarchies import HACPanel, SubGoalLearning, hac_experiment

FASTEST = 10.0
"""Largest velocity of sub-goals in radians per second; falling from upright leads to 8.9."""

HORIZONS = {2: 32, 3: 10}
"""Decisions of a level for one of the level above, by number of levels (Levy et al. 2019)."""

UPPER = {
    2: SubGoalLearning(),
    # Ten steps lead less far than 32: less spread, so that sub-goals can be reached. The top
    # decides once in a hundred steps: it cannot wait for a thousand decisions.
    3: SubGoalLearning(entropy=-5.0, temperature=0.2, temperature_learning_rate=1e-3, starts=100),
}
"""Settings of the upper levels by number of levels; found by hand on the seeds 10 to 12."""

VALIDATION = {
    2: rl.ValidationParameters(reward=-250.0, within=rl.EnvironmentSteps(150_000)),
    3: rl.ValidationParameters(reward=-350.0, within=rl.EnvironmentSteps(200_000)),
}
"""Acceptance tests, by number of levels."""


@dataclass(frozen=True, kw_only=True)
class Panel(HACPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = ("angle_goal_pendulum", "goal_pendulum")
    level: str = "angle_goal_pendulum"
    steps: int = 200_000
    layers: tuple[int, ...] = (64, 64, 64)
    evaluation_interval: int = 10_000


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Bring a pendulum upright with a motor too weak to lift it, and slow it down there."""
    world = panel.world()
    widest = world.task.subgoal_space
    low, high = (*widest.low[:-1], -FASTEST), (*widest.high[:-1], FASTEST)
    return hac_experiment(
        panel,
        world,
        horizons=(HORIZONS[panel.levels],) * panel.levels,
        subgoals=(replace(widest, low=low, high=high),) * (panel.levels - 1),
        upper=UPPER[panel.levels],
        validation=VALIDATION[panel.levels],
    )
