"""Data sets of point mazes from a scripted solver."""

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.cli.main import main
from coach_rl.core.errors import ConfigurationError, ParameterError
from coach_rl.environments.goal_worlds.point_maze import PointMazeMedium
from coach_rl.extensions.data.files import open_file
from coach_rl.extensions.goals_from_data.point_mazes import RECIPES, MazeSolver

SOLVER = MazeSolver(PointMazeMedium())
RADIUS = SOLVER.maze.goal_radius


def made(kind, *, seed=0, **settings):
    recorded, _ = rl.maze_data(rl.MazeDataParameters(kind=kind, **settings), seed)
    return recorded


def of_episodes(recorded, path):
    """A column by episode, [E, T, ...]."""
    column = recorded.columns[path]
    return column.reshape(len(recorded.begins), -1, *column.shape[1:])


def achieved(recorded):
    return of_episodes(recorded, "/next_observations/achieved_goal")


def goals(recorded):
    return of_episodes(recorded, "/observations/desired_goal")


@pytest.fixture(scope="module")
def stitch():
    return made("stitch", episodes=6)


@pytest.fixture(scope="module")
def navigate():
    return made("navigate", episodes=3, steps=500)


@pytest.mark.parametrize("kind", sorted(RECIPES))
def test_maze_data_has_the_episodes_and_steps_that_were_wanted(kind):
    recorded = made(kind, episodes=3, steps=25)
    assert recorded.lengths.tolist() == [25, 25, 25]
    assert recorded.columns["/actions"].shape == (75, 2)
    assert recorded.columns["/observations/observation"].shape == (75, 4)
    assert not recorded.columns["/terminated"].any()
    ends = of_episodes(recorded, "/truncated")
    assert ends[:, -1].all()
    assert not ends[:, :-1].any()
    assert np.abs(recorded.columns["/actions"]).max() <= 1


def test_maze_data_rewards_are_those_of_the_goals_in_them(stitch, navigate):
    for recorded in (stitch, navigate):
        distance = np.linalg.norm(achieved(recorded) - goals(recorded), axis=2)
        assert np.array_equal(of_episodes(recorded, "/rewards"), (distance <= RADIUS) - 1.0)


def test_maze_data_transitions_continue_each_other(navigate):
    before = of_episodes(navigate, "/observations/observation")
    after = of_episodes(navigate, "/next_observations/observation")
    assert np.array_equal(before[:, 1:], after[:, :-1])


def test_stitch_goals_are_four_cells_away_and_reached_at_the_end(stitch):
    wanted = goals(stitch)
    starts = of_episodes(stitch, "/observations/achieved_goal")[:, 0]
    apart = SOLVER.distances[SOLVER.cells_at(starts), SOLVER.cells_at(wanted[:, 0])]
    assert apart.tolist() == [4] * 6
    assert (wanted == wanted[:, :1]).all()
    assert (of_episodes(stitch, "/rewards")[:, -1] == 0).all()


def test_navigate_goals_change_where_they_are_reached(navigate):
    wanted = goals(navigate)
    changed = (wanted[:, 1:] != wanted[:, :-1]).any(axis=2)
    reached = of_episodes(navigate, "/rewards")[:, :-1] == 0
    assert reached.sum() > 5
    assert np.array_equal(changed, reached)
    assert np.isin(SOLVER.cells_at(wanted.reshape(-1, 2)), SOLVER.crossings).all()


def test_explore_keeps_a_direction_for_ten_steps():
    recorded = made("explore", episodes=4, steps=40, noise=0.0)
    actions = of_episodes(recorded, "/actions").reshape(4, 4, 10, 2)
    assert (actions == actions[:, :, :1]).all()
    np.testing.assert_allclose(np.linalg.norm(actions, axis=3), 1.0, rtol=1e-6)
    assert (actions[:, 1:, 0] != actions[:, :-1, 0]).any(axis=2).all()


def test_solver_ways_lead_through_neighbouring_cells_to_the_goal():
    cells = np.arange(len(SOLVER.cells))
    here, there = (each.ravel() for each in np.meshgrid(cells, cells, indexing="ij"))
    following = SOLVER.following[here, there]
    away = SOLVER.distances[here, there]
    assert np.array_equal(SOLVER.distances[following, there], np.maximum(away - 1, 0))
    assert np.array_equal(SOLVER.distances[here, following], np.minimum(away, 1))


def test_maze_data_of_a_seed_are_always_the_same():
    first, again, other = (made("navigate", episodes=2, steps=30, seed=seed) for seed in (3, 3, 4))
    assert all(np.array_equal(first.columns[path], again.columns[path]) for path in first.columns)
    assert not np.array_equal(first.columns["/actions"], other.columns["/actions"])


def test_maze_data_other_kinds_and_mazes_are_refused():
    with pytest.raises(ParameterError, match="'navigate' or 'stitch' or 'explore', got 'walk'"):
        rl.MazeDataParameters(kind="walk")
    params = rl.MazeDataParameters(kind="stitch", level="ant_maze")
    with pytest.raises(ConfigurationError, match=r"point_maze_medium.*got 'ant_maze'"):
        rl.maze_data(params, 0)


def test_maze_data_command_writes_what_the_function_makes(tmp_path, capsys):
    file = tmp_path / "maze.npz"
    words = ["maze_data", "stitch", str(file), "--episodes", "2", "--steps", "20", "--seed", "5"]
    assert main([*words, "--maze", "point_maze_u"]) == 0
    assert "40 transitions of 2 episodes" in capsys.readouterr().out
    written = open_file(str(file)).recorded
    wanted = made("stitch", episodes=2, steps=20, seed=5, level="point_maze_u")
    for path, column in wanted.columns.items():
        assert np.array_equal(written.columns[path], column), path
