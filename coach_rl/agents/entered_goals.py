"""Goals that an agent receives, or that move, in the middle of an episode of the simulator."""

from typing import Any

import numpy as np

from coach_rl.agents.agent_rows import AgentRows, write_rows
from coach_rl.agents.shown_numbers import ShownNumbers
from coach_rl.agents.stages.stages import Stages
from coach_rl.core.records import IntArray, Observation, Outcome, take


def enter_moved_goals(
    stages: Stages, check_shown: ShownNumbers, row_state: AgentRows[Any], outcome: Outcome
) -> None:
    """Act on moved goals from the next decision on; the last transition keeps the old ones."""
    moved = np.zeros(len(outcome.rows), np.bool_)
    for key, values in outcome.next_goal.items():
        differs = values != outcome.observation[key]
        moved |= differs.reshape(len(moved), -1).any(axis=1)
    rows = outcome.rows[moved]
    goal = take(outcome.next_goal, moved)
    check_shown(rows, goal)
    enter_goal(stages, row_state, rows, take(outcome.observation, moved), goal)
    row_state.follows[rows] = False


def enter_goal(
    stages: Stages,
    row_state: AgentRows[Any],
    rows: IntArray,
    observation: Observation,
    goal: Observation,
) -> None:
    """Enter goals [R, ...] by what rows [R] see."""
    shown = {**observation, **goal} if stages.sees_whole else goal
    entered = stages.enter(
        row_state.filters, rows, shown, starts=np.zeros(len(rows), np.bool_), learn=False
    )
    write_rows(row_state.pending, rows, entered, len(row_state.heatup))
