"""The graph of a planning agent in films: edges by their chance, the way-point and the heading."""

import numpy as np
import pytest

from coach_rl.extensions.planning.graph_rows import graph_marks, passing_colour
from coach_rl.extensions.planning.roadmap import Roadmap
from coach_rl.extensions.planning.way_points import WayPointGraph

NOWHERE = np.full(2, np.nan)


def square():
    """Four places, at (0.5 or 1.5, 0.5 or 1.5); all are neighbours."""
    grid = Roadmap.grid(np.zeros(2), np.full(2, 2.0), 1.0)
    return WayPointGraph(grid, forgetting=0.5, lowest_probability=0.02)


def place(goal):
    return float(goal[0]), float(goal[1]), 0.2


def lines(marks):
    return {(mark.place[:2], mark.line_to[:2]): mark for mark in marks if mark.line_to is not None}


def test_only_edges_that_were_tried_are_drawn_in_the_colour_of_their_worse_direction():
    graph = square()
    graph.note(0, 1, passed=True)
    graph.note(2, 3, passed=True)
    graph.note(3, 2, passed=False)
    edges = lines(graph_marks(graph, place, begin=0, way_point=-1, heading=NOWHERE))
    assert {each: mark.colour for each, mark in edges.items()} == {
        ((0.5, 0.5), (0.5, 1.5)): passing_colour(1.0),
        ((1.5, 0.5), (1.5, 1.5)): passing_colour(0.5),
    }


def test_of_places_with_more_than_is_asked_for_those_like_the_row_s_are_drawn():
    grid = Roadmap.grid(np.zeros(3), np.array([2.0, 1.0, 2.0]), 1.0, moving=2)
    graph = WayPointGraph(grid, forgetting=0.5, lowest_probability=0.02, requested=2)
    without, with_key, there_without, there_with = range(4)
    graph.note(without, there_without, passed=True, came_to=there_without)
    graph.note(there_with, with_key, passed=False)
    key = {}
    for begin in (without, with_key):
        key[begin] = lines(graph_marks(graph, place, begin=begin, way_point=-1, heading=NOWHERE))
    assert key[without].keys() == {((0.5, 0.5), (1.5, 0.5))}
    assert key[without][(0.5, 0.5), (1.5, 0.5)].colour == passing_colour(1.0)
    assert key[with_key][(0.5, 0.5), (1.5, 0.5)].colour == passing_colour(0.5)


def test_colours_go_from_red_over_yellow_to_green():
    red, yellow, green = (passing_colour(chance)[:2] for chance in (0.0, 0.5, 1.0))
    assert (red, yellow, green) == ((1.0, 0.0), (1.0, 1.0), (0.0, 1.0))


def test_the_way_is_thicker_than_edges_and_a_heading_has_its_name():
    graph = square()
    graph.note(0, 1, passed=True)
    marks = graph_marks(graph, place, begin=0, way_point=3, heading=np.array([1.5, 0.5]))
    found = lines(marks)
    way, edge = found[(0.5, 0.5), (1.5, 1.5)], found[(0.5, 0.5), (0.5, 1.5)]
    assert way.size > edge.size > 0
    (ball,) = (mark for mark in marks if mark.line_to is None)
    assert (ball.place[:2], ball.label) == ((1.5, 0.5), "heading")


def test_places_that_a_scene_does_not_show_are_left_out():
    graph = square()
    graph.note(0, 1, passed=True)
    nowhere = graph_marks(
        graph, lambda goal: None, begin=0, way_point=3, heading=np.array([1.5, 0.5])
    )
    assert not nowhere


@pytest.mark.parametrize("way_point", [-1, 0])
def test_a_row_at_its_goal_has_no_way(way_point):
    marks = graph_marks(square(), place, begin=0, way_point=way_point, heading=NOWHERE)
    assert all(mark.place != mark.line_to for mark in marks)
    assert len(marks) <= 0
