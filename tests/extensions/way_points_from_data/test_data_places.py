"""Places chosen from data, and ways over them, against plain programs on small graphs."""

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.errors import SpaceError
from coach_rl.extensions.planning.way_points import WayPointGraph
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.extensions.way_points_from_data.data_places import farthest_points

BOUNDS = np.zeros(2), np.full(2, 10.0)


class Table:
    """Costs of edges from a table, [M, M]."""

    missed = None

    def __init__(self, table):
        self.table = np.array(table, np.float64)

    def of(self, roadmap, states, edges):
        return self.table[roadmap.begins[edges], roadmap.ends[edges]]


class Straight:
    """Costs that are distances."""

    missed = None

    def of(self, roadmap, states, edges):
        return roadmap.lengths[edges]


def chosen(goals, costs, **settings):
    goals = np.array(goals, np.float32)
    states = {"x": goals, "number": np.arange(len(goals))}
    return rl.DataPlaces(**settings).chosen(goals, states, costs, bounds=BOUNDS)


def edges(places):
    return set(zip(places.roadmap.begins.tolist(), places.roadmap.ends.tolist(), strict=True))


def test_farthest_points_by_hand():
    line = np.array([[4.0], [0.0], [10.0], [9.0], [4.0]])
    # From 4 the farthest is 10; then 0, which is 4 away from 4; then 9, 1 away from 10.
    np.testing.assert_array_equal(farthest_points(line, 4), [0, 2, 1, 3])
    # The second 4 equals the first: there is no fifth place.
    np.testing.assert_array_equal(farthest_points(line, 9), [0, 2, 1, 3])


def test_farthest_points_equal_a_plain_program():
    rng = np.random.default_rng(0)
    points = rng.random((60, 3))
    wanted = [0]
    while len(wanted) < 12:
        away = [min(np.linalg.norm(p - points[each]) for each in wanted) for p in points]
        wanted.append(int(np.argmax(away)))
    np.testing.assert_array_equal(farthest_points(points, 12), wanted)


def test_data_places_edges_are_those_up_to_the_longest_in_either_direction():
    costs = Table([[0, 3, 9], [8, 0, 7], [9, 6, 0]])
    places = chosen([[0, 0], [9, 0], [0, 4]], costs, longest=6.0)
    # 0 to 1 costs 3, and 8 back; 2 to 1 costs 6, and 7 back; between 0 and 2 it is 9 both ways.
    assert edges(places) == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert (np.diff(places.roadmap.begins) >= 0).all()
    np.testing.assert_allclose(places.roadmap.lengths, [9, 9, np.sqrt(97), np.sqrt(97)])


def test_data_places_keep_the_observations_made_there():
    places = chosen([[0, 0], [1, 0], [9, 9], [0, 8]], Straight(), count=3)
    np.testing.assert_array_equal(places.states["number"], [0, 2, 3])
    np.testing.assert_array_equal(places.roadmap.places, [[0, 0], [9, 9], [0, 8]])


def test_data_places_of_one_goal_have_no_edges():
    places = chosen([[2, 2]] * 5, Straight())
    assert len(places.roadmap.places) == 1
    assert edges(places) == set()


@pytest.mark.parametrize("seed", range(3))
def test_ways_over_data_places_equal_floyd_and_warshall(seed):
    rng = np.random.default_rng(seed)
    count = 12
    table = rng.uniform(1, 10, (count, count))
    goals = rng.random((count, 2)) * 10
    numbers = farthest_points(np.float32(goals), count)
    places = chosen(goals, Table(table), count=count, longest=3.0)
    graph = WayPointGraph(places.roadmap, forgetting=0.0, lowest_probability=0.02)
    graph.try_costs = Table(table).of(places.roadmap, {}, np.arange(len(places.roadmap.begins)))
    assert len(numbers) == len(places.roadmap.places) == count
    total = np.full((count, count), np.inf)
    np.fill_diagonal(total, 0.0)
    for begin, end in edges(places):
        total[begin, end] = table[begin, end]
    direct = total.copy()
    for between in range(count):
        total = np.minimum(total, total[:, between, None] + total[between])
    begins, ends = (total < np.inf).nonzero()
    np.testing.assert_allclose(graph.costs(begins, ends), total[begins, ends])
    following = graph.next_places(begins, ends)
    moves = begins != ends
    through = direct[begins, following] + total[following, ends]
    np.testing.assert_allclose(through[moves], total[begins, ends][moves])
    np.testing.assert_array_equal(following[~moves], ends[~moves])
    # What no way leads to is in another part of the graph.
    for begin, end in zip(*(total == np.inf).nonzero(), strict=True):
        assert places.roadmap.parts[begin] != places.roadmap.parts[end]


def test_data_places_saved_state_restores_places_and_edges():
    places = chosen([[0, 0], [1, 0], [9, 9], [0, 8]], Straight(), longest=9.0)
    again = rl.DataPlaces().build(*BOUNDS, 2)
    assert len(again.roadmap.places) == 0
    again.load_state_dict(places.state_dict())
    assert_same_state(again.state_dict(), places.state_dict())
    np.testing.assert_array_equal(again.roadmap.lengths, places.roadmap.lengths)
    assert edges(again) == edges(places)


def test_data_places_of_other_goals_are_refused():
    state = chosen([[0, 0], [1, 0]], Straight()).state_dict()
    with pytest.raises(SpaceError, match="goals of another kind"):
        rl.DataPlaces().build(np.zeros(3), np.ones(3), 3).load_state_dict(state)


def test_data_places_goals_to_explore_lie_within_the_bounds():
    places = rl.DataPlaces().build(np.array([-1.0, 2.0]), np.array([1.0, 6.0]), 2)
    numbers = np.array([[[0.0, 0.0], [0.5, 0.25], [1.0, 1.0]]])
    np.testing.assert_allclose(places.drawn(numbers), [[[-1, 2], [0, 3], [1, 6]]])
