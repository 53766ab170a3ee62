"""Timed sub-goals (HiTS) bring a mass through gates that open and close by themselves.

`hierarchy=hac` is the control: the same levels with sub-goals that have no time; `hierarchy=none`
is one agent alone.
"""

from dataclasses import dataclass
from typing import Literal

from coach_rl import (
    EnvironmentSteps,
    GatesParameters,
    GoalSpace,
    GraphManager,
    TimedGoalSpace,
    ValidationParameters,
)
from coach_rl.presets.goal_hierarchies import HACPanel, SubGoalLearning, hac_experiment

SUBGOALS = {
    "elements": (0, 1),
    "low": (-1.0, -0.15),
    "high": (1.0, 0.15),
    "threshold": (0.08, 0.08),
}
"""Sub-goals are places with velocities."""
TOP_HORIZON = 8
"""Sub-goals of an episode of the top level."""


@dataclass(frozen=True, kw_only=True)
class Panel(HACPanel):
    """Settings to change with -cp."""

    level: str = "gates"
    hierarchy: Literal["hits", "hac", "none"] = "hits"  # type: ignore[assignment]
    """hits: sub-goals with a time. hac: sub-goals without. none: one agent acts alone."""
    longest: int = 30
    """Steps that a sub-goal may take."""
    steps: int = 60_000
    layers: tuple[int, ...] = (64, 64)
    evaluation_interval: int = 10_000


def graph_manager(panel: Panel) -> GraphManager:
    """Pass two gates while they are open, on the way to a place behind them."""
    is_timed = panel.hierarchy == "hits"
    subgoals = (
        TimedGoalSpace(longest=panel.longest, **SUBGOALS) if is_timed else GoalSpace(**SUBGOALS)
    )
    return hac_experiment(
        panel,
        GatesParameters(),
        goals=GoalSpace(key="achieved_goal", low=(-1.0,), high=(1.0,), threshold=(0.05,)),
        horizons=(TOP_HORIZON, None if is_timed else panel.longest),
        subgoals=(subgoals,),
        upper=SubGoalLearning(),
        validation=ValidationParameters(reward=-80.0, within=EnvironmentSteps(60_000)),
    )
