"""The state that a planning agent keeps of each row, and the marks it draws into films."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np

from coach_rl.core.interfaces import Colour, GoalPlace, Mark
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.state import State
from coach_rl.extensions.planning.places import PlaceRecords
from coach_rl.extensions.planning.way_points import Tries, WayPointGraph

NOWHERE = -1
"""The number of no place."""
_REMEMBERED = 16
"""Number of misses that a row remembers in a (sub-)episode, the last ones."""


@dataclass(kw_only=True)
class GraphRows(Saved):
    """The memory of each row of a stack."""

    SAVED = (
        "place",
        SavedAttribute("starts_as_requested", key="is_as_asked"),
        "way_point",
        "target",
        "heading",
        "changes",
        SavedAttribute("requested", key="asked"),
        "missed",
        "missed_at",
        "noise",
        "heatup_noise",
    )

    place: IntArray
    """[N] the place where the open decision began."""
    starts_as_requested: BoolArray
    """[N] whether it began as way-points require, `fixed_goal` included."""
    way_point: IntArray
    """[N] the next place on its way; -1 where that is the goal itself."""
    target: IntArray
    """[N] the place that its way leads to."""
    heading: FloatArray
    """[N, P] the goal that the row explores instead of its own; nan for none."""
    missed: IntArray
    """[N, K, 2] the last tries of the (sub-)episode that missed, newest first: where they began and
    their way-point; -1 for none."""
    missed_at: IntArray
    """[N, K] how often places had changed when each of these was decided."""
    changes: IntArray
    """[N] how often places had changed when the open decision was made."""
    requested: FloatArray
    """[N, S] the goal that the last decision gave the level below, float32."""
    noise: RowNoise
    """Uniform numbers for exploring."""
    heatup_noise: RowNoise
    """Uniform numbers for the random goals of heat-up."""
    planned: int = 0
    """Decisions planned since the last report."""
    planning_seconds: float = 0.0
    """Seconds that these took."""
    followed: State | None = None
    """Decisions to follow, made by another copy of the agent; None: it decides itself."""

    @classmethod
    def new(
        cls,
        num_envs: int,
        *,
        place_size: int,
        goal_size: int,
        noise: RowNoise,
        heatup_noise: RowNoise,
    ) -> Self:
        """Rows that have not decided yet.

        Args:
            num_envs: N.
            place_size: P, elements of a place.
            goal_size: S, elements of a goal of the level below.
            noise: Uniform numbers for exploring.
            heatup_noise: Uniform numbers for the random goals of heat-up.
        """
        return cls(
            place=np.zeros(num_envs, np.int64),
            starts_as_requested=np.ones(num_envs, np.bool_),
            way_point=np.full(num_envs, NOWHERE),
            target=np.zeros(num_envs, np.int64),
            heading=np.full((num_envs, place_size), np.nan),
            missed=np.full((num_envs, _REMEMBERED, 2), NOWHERE),
            missed_at=np.zeros((num_envs, _REMEMBERED), np.int64),
            changes=np.zeros(num_envs, np.int64),
            requested=np.zeros((num_envs, goal_size), np.float32),
            noise=noise,
            heatup_noise=heatup_noise,
        )

    def decisions(self) -> State:
        return {
            "place": self.place,
            "starts_as_requested": self.starts_as_requested,
            "way_point": self.way_point,
            "target": self.target,
            "heading": self.heading,
            "changes": self.changes,
            "requested": self.requested,
        }

    def follow(self, decisions: State) -> None:
        self.followed = decisions

    def take(self, decisions: State, rows: IntArray) -> None:
        """Copy the decisions of these rows from arrays [N, ...]."""
        for name, kept in self.decisions().items():
            kept[rows] = decisions[name][rows]

    def missed_tries(self, rows: IntArray, records: PlaceRecords) -> list[Tries]:
        """The tries that each of these rows has missed, between places that have not moved."""
        tries = self.missed[rows]
        since = self.missed_at[rows].repeat(2)
        stand: BoolArray = records.have_stood(tries.ravel(), since.ravel()).reshape(tries.shape)
        return [
            tuple(sorted((begin, end) for begin, end in each[stands.all(axis=1)].tolist()))
            for each, stands in zip(tries, stand, strict=True)
        ]

    def remember_misses(self, rows: IntArray) -> None:
        """Record that the last decisions of these rows missed their way-points."""
        self.missed[rows, 1:] = self.missed[rows, :-1]
        self.missed[rows, 0, 0], self.missed[rows, 0, 1] = self.place[rows], self.way_point[rows]
        self.missed_at[rows, 1:] = self.missed_at[rows, :-1]
        self.missed_at[rows, 0] = self.changes[rows]


_WAY = (0.0, 0.0, 0.0, 1.0)
_HEADING = (0.2, 0.5, 1.0, 1.0)
"""Colours of the edge that is to be passed now, and of the place that is explored."""
_EDGE_SIZE = 0.04
_WAY_SIZE = 0.1
_BALL_SIZE = 0.2
"""Radii, as shares of the distance between neighbouring places."""


def graph_marks(
    graph: WayPointGraph, place: GoalPlace, *, begin: int, way_point: int, heading: FloatArray
) -> list[Mark]:
    """The edges that were tried, coloured by the chance to pass, and what a row is about.

    An edge that was tried both ways has the colour of the worse. Where places have more elements
    than goals below, the edges are those between places with the same rest as the row's.

    Args:
        graph: The graph.
        place: From a place of the graph, [G], to its position in the scene.
        begin: The place where the row's decision began.
        way_point: The place it is to get to; -1 where that is none of the graph's.
        heading: The goal that it explores, [G]; nan for none.
    """
    places = graph.roadmap.places
    spacing = graph.roadmap.spacing
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
    roadmap = graph.roadmap
    passed = graph.passed
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
