"""Tries succeed at a sub-goal, or at a goal above that holds when its time is up."""

import pytest
from plain_stack import Level
from scripted_stack import build, managers

from coach_rl.core.clock import Clock
from coach_rl.core.goals import GoalSpace, TimedGoalSpace
from coach_rl.core.levels import CertifyParameters

BOUNDS = {"low": (-3.0, -3.0), "high": (3.0, 3.0), "elements": (0, 1)}
NEVER, ALWAYS = (1e-5, 1e-5), (99.0, 99.0)
"""Thresholds."""


@pytest.mark.parametrize(("threshold", "least", "most"), [(NEVER, 0, 0), (ALWAYS, 0.5, 1)])
def test_certifier_end_of_time_succeeds_only_at_goal(threshold, least, most):
    levels = [
        Level(name="top"),
        Level(
            name="middle",
            goal_space=TimedGoalSpace(**BOUNDS, threshold=threshold, longest=3),
            certify=CertifyParameters(candidates=2),
        ),
        Level(name="low", goal_space=GoalSpace(**BOUNDS, threshold=NEVER), horizon=50),
    ]
    top, _ = build([1, 2, 3], levels, Clock())
    for _ in range(6):
        top.recv()
    share = managers(top)[1].drain()["fork_success_share"]  # an end of the walk is none
    assert least <= share <= most
