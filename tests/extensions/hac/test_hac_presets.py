"""Presets of HAC: what their panels set."""

import numpy as np
import pytest

from coach_rl.core.clock import ConstantSchedule
from coach_rl.exploration_policies import GaussianNoise
from coach_rl.extensions.exploration import EpsilonZGreedy
from tests.presets.test_presets import load_graph_manager


def test_point_maze_goals_keep_the_minimum_path():
    panel = {"level": "point_maze_medium", "min_path": 6}
    maze = load_graph_manager("PointMaze_HAC", panel).parameters.environment.task
    assert maze.min_path == 6
    assert load_graph_manager("PointMaze_HAC", {}).parameters.environment.task.min_path == 1


@pytest.mark.parametrize(
    ("levels", "reaches"),
    [(2, [(2.0, 2.0)]), (3, [(6.0, 6.0), (0.8, 0.8)])],  # 2 m/s, 0.05 s a step; the map is 6 m wide
)
def test_point_maze_sub_goals_are_as_far_as_the_horizon(levels, reaches):
    panel = {"level": "point_maze_medium", "levels": levels}
    _, *below = load_graph_manager("PointMaze_HAC", panel).parameters.stack
    assert all(each.goal_space.relative for each in below)
    np.testing.assert_allclose([each.goal_space.reach for each in below], reaches)


def test_flat_hac_agent_with_repeated_exploration():
    panel = {"hierarchy": "none", "exploration": "epsilon_z_greedy", "epsilon": 0.1, "noise": 0.3}
    (alone,) = load_graph_manager("PointMaze_HAC", panel).parameters.levels
    assert alone.agent.learner.exploration == EpsilonZGreedy(
        epsilon=ConstantSchedule(value=0.1),
        noise=GaussianNoise(scale=ConstantSchedule(value=0.3)),
    )
    assert alone.agent.ratio == 3.0


def test_hac_ant_position_is_hidden_below():
    for hierarchy, hidden in (("hac", True), ("none", False)):
        parameters = load_graph_manager("AntMaze_HAC", {"hierarchy": hierarchy}).parameters
        *above, lowest = [each.agent.learner for each in parameters.levels]
        assert (lowest.input_filter is not None) == hidden
        assert all(each.input_filter is None for each in above)
        for learner in (*above, lowest):
            assert learner.actor.torso.keys == ("observation", "desired_goal")
        assert parameters.evaluation_environment.task.targets == "evaluation"
