"""The names of a memory's columns: what is kept, what samplers pass on, what is shown.

A column is an array or tensor whose first axis counts transitions, under a flat path.
"""

from collections.abc import Mapping
from typing import TypeVar

from torch import Tensor

from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.records import Array, Transition
from coach_rl.core.timed_goals import TIME_KEY

Columns = dict[str, Tensor]
"""Columns by path, [B, ...] each."""

OBSERVATIONS, NEXT_OBSERVATIONS = "/observations/", "/next_observations/"
"""An observation key follows."""
ACTIONS, ACTION_PARTS = "/actions", "/actions/"
"""Path of the actions; for a Dict action space the name of a part follows."""
REWARDS, TERMINATED, TRUNCATED = "/rewards", "/terminated", "/truncated"
DURATIONS, ROWS = "/durations", "/rows"
FOLLOWS = "/follows"
"""Nothing was left out and no goal moved between a transition and its row's one before."""
MASK = "/mask"
"""Path of the mask: true where there is a transition."""

POSITIONS, WEIGHTS, DISCOUNTS = "/positions", "/weights", "/discounts"
"""Columns of a batch."""

ACHIEVED, REACHED, FAILED = "/achieved_goals", "/reached", "/failed"
"""For hindsight: the goal each next observation achieves, whether that was the wanted one, and
whether the level stopped there because the one below missed its goal."""
TIMES_LEFT = "/times_left"
"""For hindsight where goals have a time: the steps left after each transition."""
ACHIEVED_ACTIONS, MISSED = "/achieved_actions", "/missed"
TESTED, PENALISED = "/tested", "/penalised"
"""For hindsight actions: the sub-goal that was achieved as an action that asks for it, whether the
one that was sent was missed, whether it was tested, and whether that is to be penalised."""
OBSERVED_GOALS = (f"{OBSERVATIONS}{GOAL_KEY}", f"{NEXT_OBSERVATIONS}{GOAL_KEY}")
OBSERVED_TIMES = (f"{OBSERVATIONS}{TIME_KEY}", f"{NEXT_OBSERVATIONS}{TIME_KEY}")

INTERNAL = "/sampling/"
"""Columns under this prefix pass between sampler units and are not part of a batch."""
ENDS = f"{INTERNAL}ends"
"""Position of the last transition of each n-step return: its next observation is the batch's."""
WINDOW_STEPS, WINDOW_KEPT = f"{INTERNAL}window/steps", f"{INTERNAL}window/kept"
WINDOW_REWARDS = f"{INTERNAL}window/rewards"
WINDOW_TERMINATED = f"{INTERNAL}window/terminated"
WINDOW_DURATIONS = f"{INTERNAL}window/durations"
GOALS, RELABELLED = f"{INTERNAL}hindsight/goals", f"{INTERNAL}hindsight/relabelled"
TIMES = f"{INTERNAL}hindsight/times"
TESTS, KEEPS = f"{INTERNAL}hindsight/tests", f"{INTERNAL}hindsight/keeps_action"

_EVERYONES = (OBSERVATIONS, NEXT_OBSERVATIONS)
_EVERYONES_TOO = (REWARDS, TERMINATED, TRUNCATED, DURATIONS, ROWS, FOLLOWS)
_OF_BATCHES = (POSITIONS, WEIGHTS, DISCOUNTS)
INFOS = "infos/"
"""Extras under this prefix are infos of the environment."""
_Column = TypeVar("_Column")


def extra(name: str) -> str:
    """The column of what an agent keeps with its actions under a name."""
    return f"/{name}"


def under(prefix: str, columns: Mapping[str, _Column]) -> dict[str, _Column]:
    """The columns whose paths begin so, by what follows."""
    return {
        path.removeprefix(prefix): column
        for path, column in columns.items()
        if path.startswith(prefix)
    }


def extras_of(columns: Mapping[str, _Column]) -> dict[str, _Column]:
    """The columns that only some agents or users have, by name."""
    return {
        path.removeprefix("/"): column
        for path, column in columns.items()
        if not path.startswith(_EVERYONES)
        and path not in _EVERYONES_TOO
        and path not in _OF_BATCHES
        and not _is_action(path)
    }


def columns_of(transition: Transition) -> dict[str, Array]:
    """A transition's columns, [R, ...] each, without those that only some memories keep."""
    columns = {
        REWARDS: transition.reward,
        TERMINATED: transition.terminated,
        TRUNCATED: transition.truncated,
        DURATIONS: transition.duration,
    }
    for key, values in transition.observation.items():
        columns[f"{OBSERVATIONS}{key}"] = values
    for key, values in transition.next_observation.items():
        columns[f"{NEXT_OBSERVATIONS}{key}"] = values
    if isinstance(transition.action, dict):
        return columns | {f"{ACTION_PARTS}{key}": part for key, part in transition.action.items()}
    return columns | {ACTIONS: transition.action}


def shown_as(path: str, agent: str) -> str:
    """The name under which a memory's `trajectories` show a column.

    Observations, infos, rewards, ends, durations and rows keep theirs. What belongs to an agent
    stands under its name: `/agents/<name>/actions` (or `/agents/<name>/actions/<part>`) and, for
    every extra it keeps, `/agents/<name>/artifacts/<extra>`.

    Args:
        path: The column's path.
        agent: The agent's name.
    """
    if path.startswith((*_EVERYONES, extra(INFOS))) or path in _EVERYONES_TOO:
        return path
    if _is_action(path):
        return f"/agents/{agent}{path}"
    return f"/agents/{agent}/artifacts{path}"


def _is_action(path: str) -> bool:
    return path == ACTIONS or path.startswith(ACTION_PARTS)
