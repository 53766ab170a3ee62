"""Way-points of plans that begin at the state itself, against a plain program."""

from types import SimpleNamespace

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.extensions.planning.place_space import PlaceSpace
from coach_rl.extensions.planning.roadmap import Roadmap
from coach_rl.extensions.planning.way_points import WayPointGraph
from coach_rl.extensions.way_points_from_data.state_planner import StatePlanner

GOALS = rl.GoalSpace(low=(0.0, 0.0), high=(4.0, 4.0), threshold=(0.3, 0.3), key="x")
SPACE = PlaceSpace(own=GOALS, sub_goal=GOALS)
LINE = Roadmap.of_neighbours(np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0], [3.0, 0.0]]), 1)


class Distances:
    """Costs that are distances from what is observed."""

    missed = 5.0

    def of(self, roadmap, states, edges):
        ends = roadmap.places[roadmap.ends[edges]]
        return np.linalg.norm(states["x"][roadmap.begins[edges]] - ends, axis=1)


def planner(roadmap=LINE, *, longest=1.5, retry_discount=0.5):
    graph = WayPointGraph(
        roadmap, forgetting=0.2, lowest_probability=0.02, retry_discount=retry_discount, missed=5.0
    )
    memory = SimpleNamespace(graph=graph)
    return StatePlanner(
        memory, SPACE, costs=Distances(), longest=longest, retry_discount=retry_discount
    )


def ways(plan, positions, targets, missed=None):
    observation = {"x": np.float32(positions)}
    places = plan._graph.roadmap.nearest(observation["x"])
    missed = missed or [()] * len(places)
    return plan.ways(places, np.array(targets), missed, observation, explores=False)


def test_target_in_reach_has_the_goal_itself_sent():
    places, way_points = ways(planner(), [[1.9, 0.0], [2.9, 0.0]], [3, 3])
    np.testing.assert_array_equal(way_points, [3, 3])
    np.testing.assert_array_equal(places, [3, 3])  # where way-points are targets, the way is over


def test_state_far_from_all_places_has_the_goal_itself_sent():
    places, way_points = ways(planner(), [[0.0, 4.0]], [3])
    np.testing.assert_array_equal(way_points, [3])
    np.testing.assert_array_equal(places, [3])


def test_missed_try_makes_another_way_better():
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.2], [1.0, 1.2]])
    plan = planner(Roadmap.of_neighbours(square, 2), longest=1.3)
    _, way_points = ways(plan, [[0.0, 0.0]], [3])
    np.testing.assert_array_equal(way_points, [1])  # 1 + 1.2; the other way costs 1.2 + 1
    # A miss halves the chance of the first try: 1 + 5 + 1.2 against 2.2.
    _, way_points = ways(plan, [[0.0, 0.0]], [3], [((0, 1),)])
    np.testing.assert_array_equal(way_points, [2])
    # Two more of the other way quarter its chance: 1.2 + 15 + 1 against 7.2.
    _, way_points = ways(plan, [[0.0, 0.0]], [3], [((0, 1), (0, 2), (0, 2))])
    np.testing.assert_array_equal(way_points, [1])


def test_edge_that_is_often_missed_in_the_world_makes_another_way_better():
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.2], [1.0, 1.2]])
    plan = planner(Roadmap.of_neighbours(square, 2), longest=1.3)
    for _ in range(9):
        plan._graph.note(0, 1, passed=False)
    _, way_points = ways(plan, [[0.0, 0.0]], [3])
    np.testing.assert_array_equal(way_points, [2])


@pytest.mark.parametrize("seed", range(3))
def test_way_points_equal_a_plain_program(seed):
    rng = np.random.default_rng(seed)
    places = rng.random((12, 2)) * 4
    roadmap = Roadmap.of_neighbours(places, 3)
    plan = planner(roadmap, longest=2.0)
    costs = rng.uniform(0.1, 3.0, len(roadmap.begins))
    plan._graph.try_costs = costs
    rest = np.full((12, 12), np.inf)
    np.fill_diagonal(rest, 0.0)
    rest[roadmap.begins, roadmap.ends] = costs
    for between in range(12):
        rest = np.minimum(rest, rest[:, between, None] + rest[between])
    positions = rng.random((20, 2)) * 4
    targets = rng.integers(12, size=20)
    begins, found = ways(plan, positions, targets)
    sent_on = 0
    for row, (position, target) in enumerate(zip(np.float32(positions), targets, strict=True)):
        best, wanted = np.inf, target
        is_there = (np.abs(position - np.float32(places[target])) <= 0.3).all()
        for place in range(12):
            step = np.linalg.norm(position - places[place])
            is_reached = (np.abs(position - np.float32(places[place])) <= 0.3).all()
            if (
                step <= 2.0
                and not is_reached
                and not is_there
                and step + rest[place, target] < best
            ):
                best, wanted = step + rest[place, target], place
        assert found[row] == wanted
        nearest = np.linalg.norm(places - position, axis=1).argmin()
        assert begins[row] == (target if wanted == target else nearest)
        sent_on += wanted != target
    assert 0 < sent_on < 20


def test_graph_without_places_has_the_goal_itself_sent():
    empty = np.zeros(0, np.int64)
    none = Roadmap(places=np.zeros((0, 2)), begins=empty, ends=empty, lengths=np.zeros(0))
    places, way_points = ways(planner(none), [[1.0, 1.0]], [0])
    np.testing.assert_array_equal(places, way_points)
