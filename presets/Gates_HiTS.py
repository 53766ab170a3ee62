"""Timed sub-goals (HiTS) bring a mass through gates that open and close by themselves.

`hierarchy=hac` is the control: the same levels with sub-goals that have no time; `hierarchy=none`
is one agent alone. Settings are first guesses, with which all three learn, the control most surely
(benchmarks/results/switches.md).
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import coach_rl as rl
from coach_rl.presets.goal_hierarchies import ReplayPanel, hindsight_ddpg
from coach_rl.presets.panels import hrl, noisy

GOALS = rl.GoalSpace(key="achieved_goal", low=(-1.0,), high=(1.0,), threshold=(0.05,))
"""The goals of the environment."""
SUBGOALS = rl.GoalSpace(elements=(0,), low=(-1.0,), high=(1.0,), threshold=(0.08,))
"""Sub-goals without a time: places."""


@dataclass(frozen=True, kw_only=True)
class Panel(ReplayPanel):
    """Settings to change with -cp."""

    LEVELS: ClassVar = ("gates",)
    level: str = "gates"
    hierarchy: Literal["hits", "hac", "none"] = "hits"
    """hits: sub-goals with a time. hac: sub-goals without. none: one agent acts alone."""
    horizon: int = 8
    """Sub-goals of an episode of the upper level."""
    longest: int = 30
    """Steps that a sub-goal may take."""
    epsilon: float = 0.2
    """Fraction of random decisions while exploring."""
    noise: float = 0.1
    """Standard deviation of the noise on other decisions, in half-ranges of the action."""
    testing_rate: float = 0.3
    """Fraction of sub-goals that are tested."""
    updates_per_step: float = 0.5
    upper_updates_per_step: float = 8.0
    """Gradient steps per decision of the upper level."""
    batch: int = 128
    num_envs: int = 16
    steps: int = 40_000
    layers: tuple[int, ...] = (64, 64)
    evaluation_interval: int = 10_000


def graph_manager(panel: Panel) -> rl.GraphManager:
    """Pass two gates while they are open, on the way to a place behind them."""
    if panel.level not in panel.LEVELS:
        raise rl.UnknownNameError(
            "level", panel.level, panel.LEVELS, "`coach describe PRESET` lists them"
        )
    world = rl.GatesParameters()
    schedule = panel.schedule()
    if panel.hierarchy == "none":
        alone = _agent(panel, updates=panel.updates_per_step, bounded=False)
        level = rl.LevelParameters(name="alone", agent=alone, goal_space=GOALS)
        return hrl(panel, (level,), world, schedule, validation=None)
    low = rl.LevelParameters(
        name="low",
        agent=_agent(panel, updates=panel.updates_per_step),
        goal_space=SUBGOALS,
        horizon=panel.longest,
    )
    if panel.hierarchy == "hits":
        low = replace(
            low, goal_space=rl.TimedGoalSpace.of(SUBGOALS, longest=panel.longest), horizon=None
        )
    top = rl.LevelParameters(
        name="top",
        agent=_agent(panel, updates=panel.upper_updates_per_step),
        goal_space=GOALS,
        horizon=panel.horizon,
    )
    return rl.HACGraphManager(
        rl.HACGraphParameters(
            stack=(top, low),
            testing_rate=panel.testing_rate,
            environment=world,
            schedule=schedule,
            num_envs=panel.num_envs,
        )
    )


def _agent(panel: Panel, *, updates: float, bounded: bool = True) -> rl.HACAgentParameters:
    """DDPG with hindsight, which acts at any level."""
    learner = hindsight_ddpg(
        panel,
        updates=updates,
        learning_starts=500,
        exploration=noisy(panel.epsilon, panel.noise),
        bounded=bounded,
    )
    return rl.HACAgentParameters(learner=learner, bound_values=bounded)
