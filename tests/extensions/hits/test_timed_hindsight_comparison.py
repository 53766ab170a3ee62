"""Ends that contradict those of hindsight for goals with a time are warned of."""

import numpy as np
import pytest

from coach_rl.core.errors import CoachWarning
from coach_rl.core.goals import TIME_KEY
from coach_rl.extensions.hindsight.hindsight import Hindsight
from coach_rl.extensions.hindsight.hindsight_comparison import HindsightComparison
from coach_rl.extensions.hits.timed_goals import TimedGoalSpace
from coach_rl.extensions.hits.timed_hindsight import timed
from tests.extensions.hindsight.test_hindsight import GOAL
from tests.extensions.hindsight.test_hindsight_comparison import transitions


def test_comparison_timed_goals_at_end_of_time():
    goal = TimedGoalSpace.of(GOAL, longest=10)
    hindsight = timed(Hindsight(goal=goal, strategy="future", ratio=1.0, goal_ends_episode=True))
    comparison = HindsightComparison(hindsight, "agent 'a'")

    def left(stored, *steps):
        times = {TIME_KEY: np.array(steps)[:, None] / 10}
        return stored._replace(after=stored.after | times)

    stored = transitions([0.1, 0.1, 2.0], [0.0, 1.0, 0.0], [False, True, True])
    comparison.compare(left(stored, 3, 0, 0))
    with pytest.warns(CoachWarning):
        comparison.compare(left(transitions([0.1], [0.0], True), 0))
