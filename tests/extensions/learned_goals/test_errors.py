"""Learned goals that are refused."""

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError, ParameterError
from tests.agents.test_checked_goals import flat
from tests.presets.test_errors import built
from tests.refusals import check_refused


def test_metra_goals_in_hindsight_of_a_flat_agent_are_refused():
    goals = rl.METRAGoalSpace(
        key="observation", low=(-1.0,) * 4, high=(1.0,) * 4, threshold=(0.1,) * 4
    )
    check_refused(
        lambda: flat(goals).close(),
        ConfigurationError,
        "is a METRAGoalSpace, which a level builds",
    )


def test_tasks_of_metra_goals_without_skills_are_refused():
    check_refused(
        built("PointMaze_METRA", task="goals"),
        ParameterError,
        "chooses among skills that were discovered; set skills to a run",
    )
