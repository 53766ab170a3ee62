"""Places chosen from data, and ways over them, against plain programs on small graphs."""

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.errors import SpaceError
from coach_rl.extensions.planning.way_points import WayPointGraph
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.extensions.way_points_from_data.data_places import MeanCosts, farthest_points

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


def test_farthest_points_equal_a_plain_program():
    rng = np.random.default_rng(0)
    points = rng.random((60, 3))
    wanted = [0]
    while len(wanted) < 12:
        away = [min(np.linalg.norm(p - points[each]) for each in wanted) for p in points]
        wanted.append(int(np.argmax(away)))
    np.testing.assert_array_equal(farthest_points(points, 12), wanted)


def test_data_places_keep_the_observations_nearest_to_them():
    goals = [[0, 0], [1, 0], [9, 9], [0, 8], [8, 9]]
    places = chosen(goals, Straight(), count=3, states=2, longest=20.0)
    np.testing.assert_array_equal(places.states["number"], [[0, 1], [2, 4], [3, 0]])
    np.testing.assert_array_equal(places.roadmap.places, [[0, 0], [9, 9], [0, 8]])


def test_mean_costs_are_averages_over_the_observations_of_a_place_by_hand():
    class Faster:
        missed = 3.0

        def of(self, roadmap, states, edges):
            return roadmap.lengths[edges] / states["speed"][roadmap.begins[edges]]

    roadmap = chosen([[0, 0], [6, 0]], Straight()).roadmap
    costs = MeanCosts(Faster())
    states = {"speed": np.array([[1.0, 2.0], [3.0, 6.0]])}
    # 6 m take 6 or 3 from the first place, 2 or 1 from the second.
    np.testing.assert_allclose(costs.of(roadmap, states, np.arange(2)), [4.5, 1.5])
    assert costs.missed == 3.0


def test_data_places_of_one_goal_have_no_edges():
    places = chosen([[2, 2]] * 5, Straight())
    assert len(places.roadmap.places) == 1
    assert edges(places) == set()


@pytest.mark.parametrize("seed", range(4))
def test_ways_over_data_places_equal_floyd_and_warshall(seed):
    rng = np.random.default_rng(seed)
    count = 14
    table = rng.uniform(1, 10, (count, count))
    places = chosen(rng.random((count, 2)) * 10, Table(table), count=count, longest=3.0)
    direct = np.where(table <= 3.0, table, np.inf)
    np.fill_diagonal(direct, 0.0)
    total = shortest(direct)
    there = total < np.inf
    there_and_back = there & there.T
    joined = shortest(np.minimum(direct, direct.T)) < np.inf
    kept = []
    for part in {tuple(row.nonzero()[0]) for row in joined}:
        most = max(part, key=lambda place: (there_and_back[place].sum(), -place))
        kept += [place for place in part if there_and_back[most, place]]
    kept = sorted(kept)
    assert 1 < len(kept) == len(places.roadmap.places)
    graph = WayPointGraph(places.roadmap, forgetting=0.0, lowest_probability=0.02)
    kept_table = table[np.ix_(kept, kept)]
    edge_numbers = np.arange(len(places.roadmap.begins))
    graph.try_costs = Table(kept_table).of(places.roadmap, {}, edge_numbers)
    wanted = total[np.ix_(kept, kept)]
    begins, ends = (wanted < np.inf).nonzero()
    np.testing.assert_allclose(graph.costs(begins, ends), wanted[begins, ends])
    for target in range(len(kept)):
        np.testing.assert_allclose(graph.costs_to(target), wanted[:, target])
    following = graph.next_places(begins, ends)
    moves = begins != ends
    through = direct[np.ix_(kept, kept)][begins, following] + wanted[following, ends]
    np.testing.assert_allclose(through[moves], wanted[begins, ends][moves])
    np.testing.assert_array_equal(following[~moves], ends[~moves])
    parts = places.roadmap.parts
    np.testing.assert_array_equal(wanted < np.inf, parts[:, None] == parts)


def shortest(direct):
    """Costs of the cheapest ways between all pairs, [M, M], by Floyd and Warshall."""
    total = direct.copy()
    for between in range(len(total)):
        total = np.minimum(total, total[:, between, None] + total[between])
    return total


def test_data_places_saved_state_restores_places_and_edges():
    places = chosen([[0, 0], [1, 0], [9, 9], [0, 8]], Straight(), longest=99.0)
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
