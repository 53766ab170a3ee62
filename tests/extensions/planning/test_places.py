"""Where the places of a graph are: a grid, or points that cover what was visited."""

import numpy as np
import pytest

from coach_rl import FarthestPoints, GridPlaces
from coach_rl.extensions.hiro.landmarks import farthest_points
from coach_rl.extensions.testing import assert_same_state

LOW, HIGH = np.zeros(3), np.full(3, 4.0)


def cover(**settings):
    return FarthestPoints(**settings).build(LOW, HIGH, len(LOW))


def visit(places, goals):
    """Visit goals, whose states are their sums."""
    goals = np.array(goals, np.float64)
    return places.visit(goals, {"sum": goals.sum(axis=1)})


def closest(points):
    apart = np.linalg.norm(points[:, None] - points, axis=2)
    return apart[~np.eye(len(points), dtype=bool)].min()


def test_a_grid_never_changes_and_is_explored_at_its_places():
    grid = GridPlaces(spacing=2.0).build(LOW, HIGH, 2)
    assert len(grid.roadmap.places) == 8
    assert len(visit(grid, [[0.1, 0.2, 0.3]])) == 0
    drawn = grid.drawn(np.array([[[0.0], [0.999]]]))
    assert drawn.tolist() == [[[1.0, 1.0, 1.0], [3.0, 3.0, 3.0]]]


def test_a_grid_over_what_was_visited_grows_by_the_neighbours_of_visited_places():
    low, high = np.zeros(2), np.full(2, 5.0)
    whole = GridPlaces(spacing=1.0).build(low, high, 2).roadmap
    grid = GridPlaces(spacing=1.0, visited=True).build(low, high, 2)
    assert len(grid.roadmap.places) == 0
    assert grid.drawn(np.array([[0.0], [0.999]])).tolist() == [[0.5, 0.5], [4.5, 4.5]]
    assert visit(grid, [[0.1, 0.2], [0.8, 0.9]]).tolist() == [0, 1, 2, 3], "a corner"
    square = [[0.5, 0.5], [0.5, 1.5], [1.5, 0.5], [1.5, 1.5]]
    assert grid.roadmap.places.tolist() == square
    assert len(grid.roadmap.begins) == 12, "from each to each"
    assert visit(grid, [[0.4, 0.4]]).tolist() == []
    assert visit(grid, [[1.6, 0.7]]).tolist() == [4, 5]
    assert grid.roadmap.places[4:].tolist() == [[2.5, 0.5], [2.5, 1.5]]
    assert grid.roadmap.places[:4].tolist() == square
    visit(grid, whole.places)
    assert len(grid.roadmap.begins) == len(whole.begins)


def test_what_is_visited_first_is_covered_as_by_farthest_points():
    goals = np.random.default_rng(0).uniform(LOW, HIGH, (50, 3))
    places = cover(count=10)
    assert visit(places, goals).tolist() == list(range(10))
    chosen = places.roadmap.places
    np.testing.assert_array_equal(chosen, goals[farthest_points(goals, 10)])
    np.testing.assert_allclose(places.states["sum"], chosen.sum(axis=1))


def test_a_goal_near_to_a_place_does_not_become_one():
    places = cover(spacing=1.0)
    assert visit(places, [[0, 0, 0]]).tolist() == [0]
    assert visit(places, [[0.5, 0.5, 0.5], [0, 1.0, 0]]).tolist() == []
    assert visit(places, [[0, 1.1, 0], [0, 3, 0]]).tolist() == [1, 2]
    assert places.roadmap.places[:, 1].tolist() == [0, 3, 1.1]


def test_full_places_give_way_to_farther_ones_and_never_come_closer():
    places, rng = cover(count=12), np.random.default_rng(1)
    visit(places, rng.uniform(0, 0.5, (12, 3)))
    before, apart = places.roadmap.places, closest(places.roadmap.places)
    for _ in range(60):
        goals = rng.uniform(LOW, HIGH, (4, 3))
        changed = visit(places, goals)
        now = places.roadmap.places
        assert len(now) == 12
        stays = np.setdiff1d(np.arange(12), changed)
        np.testing.assert_array_equal(now[stays], before[stays])
        assert closest(now) >= apart
        np.testing.assert_allclose(places.states["sum"], now.sum(axis=1))
        before, apart = now, closest(now)
    gaps = np.linalg.norm(goals[:, None] - now, axis=2).min(axis=1)
    assert gaps.max() <= apart, "all that was visited is within the least distance of places"


def test_goals_to_explore_are_drawn_from_anywhere_within_the_bounds():
    places = cover()
    assert places.numbers == 3
    assert places.drawn(np.array([[0.0, 0.5, 0.25]])).tolist() == [[0.0, 2.0, 1.0]]


@pytest.mark.parametrize("settings", [FarthestPoints(count=5), GridPlaces(spacing=1, visited=True)])
def test_saved_places_go_on_alike(settings):
    one, other = (settings.build(LOW, HIGH, len(LOW)) for _ in range(2))
    rng = np.random.default_rng(2)
    visit(one, rng.uniform(LOW, HIGH, (3, 3)))
    other.load_state_dict(one.state_dict())
    goals = rng.uniform(LOW, HIGH, (9, 3))
    changed = visit(one, goals).tolist()
    assert changed == visit(other, goals).tolist() != []
    assert_same_state(one.state_dict(), other.state_dict())
    np.testing.assert_array_equal(one.roadmap.begins, other.roadmap.begins)
