"""The graph of a planning agent as marks, for films."""

from collections.abc import Iterable, Iterator

import numpy as np

from coach_rl.agents.planning.way_points import WayPointGraph
from coach_rl.core.marks import Colour, GoalPlace, Mark
from coach_rl.core.records import FloatArray

_WAY, _HEADING = (0.0, 0.0, 0.0, 1.0), (0.2, 0.5, 1.0, 1.0)
"""Colours of the edge that is to be passed now, and of the place that is explored."""
_EDGE_SIZE, _WAY_SIZE, _BALL_SIZE = 0.04, 0.1, 0.2
"""Radii, as shares of the distance between neighbouring places."""


def graph_marks(
    graph: WayPointGraph, place: GoalPlace, *, begin: int, way_point: int, heading: FloatArray
) -> list[Mark]:
    """The edges that were tried, coloured by the chance to pass, and what a row is about.

    An edge that was tried both ways has the colour of the worse. Where places are more than the
    level below is asked for, the edges are those between places with the rest of where it is.

    Args:
        graph: The graph.
        place: From a place of the graph, [G], to its position in the scene.
        begin: The place where the row's decision began.
        way_point: The place it is to get to; -1 where that is none of the graph's.
        heading: The goal that it explores, [G]; nan for none.
    """
    places, spacing = graph.roadmap.places, graph.roadmap.spacing
    tried = graph.tried_around(begin) if len(places) else ()
    marks = [*_edges(graph, place, tried, size=_EDGE_SIZE * spacing)]
    if way_point not in (-1, begin):
        here, there = place(places[begin]), place(places[way_point])
        if here is not None and there is not None:
            marks.append(Mark(place=here, line_to=there, colour=_WAY, size=_WAY_SIZE * spacing))
    explored = None if np.isnan(heading).any() else place(heading)
    if explored is not None:
        size = _BALL_SIZE * spacing
        marks.append(Mark(place=explored, colour=_HEADING, size=size, label="heading"))
    return marks


def _edges(
    graph: WayPointGraph, place: GoalPlace, edges: Iterable[int], *, size: float
) -> Iterator[Mark]:
    roadmap, passed = graph.roadmap, graph.passed
    worst: dict[tuple[int, int], float] = {}
    for edge in edges:
        ends = sorted((int(roadmap.begins[edge]), int(roadmap.ends[edge])))
        between = ends[0], ends[1]
        worst[between] = min(worst.get(between, 1.0), float(passed[edge]))
    for (first, last), chance in worst.items():
        one, other = place(roadmap.places[first]), place(roadmap.places[last])
        if one is not None and other is not None:
            yield Mark(place=one, line_to=other, colour=passing_colour(chance), size=size)


def passing_colour(chance: float) -> Colour:
    """The colour of an edge: red where it is never passed, over yellow to green where always."""
    return min(1.0, 2 - 2 * chance), min(1.0, 2 * chance), 0.1, 1.0
