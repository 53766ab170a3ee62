"""The levels of a hierarchy in numbers."""

from dataclasses import replace

import pytest

from coach_rl.studies.level_figures import level_figures, levels_with_goals
from coach_rl.studies.scores import RunScores, read_scores
from tests.studies.written_runs import write_run


@pytest.fixture
def run(tmp_path) -> RunScores:
    return read_scores(write_run(tmp_path / "run"))


def test_levels_with_goals_reach_one_or_are_near_one(run):
    final = {
        **{"top/goal_share": 0.0, "top/distance": 0.0, "graph/goal_share": 0.0},
        **{"graph/distance": 6.5, "low/goal_share": 1.0, "reward_mean": 1.0},
    }
    assert levels_with_goals([run, replace(run, final=final)]) == ["graph", "low"]
    assert levels_with_goals([run]) == []


def test_figures_are_means_and_columns_without_any_are_left_out(run):
    graph = {"graph_places": 1200.0, "planning_seconds": 4e-4, "distance": 14.0}
    final = {f"graph/{name}": value for name, value in graph.items()} | {"low/distance": 0.25}
    one = replace(run, final=final, thresholds={"graph": (0.5, 0.5), "low": (0.5, 1.0)})
    runs = [one, replace(one, final={**final, "graph/distance": 15.0}), replace(run, final={})]
    assert level_figures([(runs, "graph"), (runs, "low")]) == {
        "reached within": ["0.5", "0.5 to 1"],
        "distance at the end": ["14.5", "0.25"],
        "places": ["1,200", ""],
        "ms of planning a decision": ["0.4", ""],
    }
    assert level_figures([]) == {}
