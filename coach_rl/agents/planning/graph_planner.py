"""The choice of places that an agent heads for, and of what it asks the level below for."""

import numpy as np

from coach_rl.agents.planning.graph_memory import GraphMemory
from coach_rl.agents.planning.graph_rows import NOWHERE
from coach_rl.agents.planning.place_space import PlaceSpace
from coach_rl.agents.planning.way_points import Tries, WayPointGraph
from coach_rl.core.records import BoolArray, FloatArray, IntArray, Observation


class GraphPlanner:
    """Ways of rows over a graph.

    Args:
        memory: The graph.
        space: What its places are made of.
    """

    def __init__(self, memory: GraphMemory, space: PlaceSpace) -> None:
        self._memory, self._space = memory, space

    def targets(
        self, aims: FloatArray, places: IntArray, missed: list[Tries], *, explores: bool
    ) -> IntArray:
        """The places that are nearest to aims, [R].

        Of several that are equally near, and of what an aim leaves open, it is what the cheapest
        way leads to.

        Args:
            aims: Goals that the rows head for, [R, P]; nan where they leave an element open.
            places: The places that the rows are at, [R].
            missed: What each row has missed in its episode.
            explores: Whether changes of the rest are counted on that have never come about.
        """
        roadmap, targets = self._graph.roadmap, np.zeros_like(places)
        if not len(roadmap.places):
            return targets
        for row, (aim, place) in enumerate(zip(aims, places.tolist(), strict=True)):
            position = aim[: self._space.goal_size] if np.isnan(aim).any() else aim
            nearest = roadmap.all_nearest(position, to=place)
            targets[row] = nearest[0]
            if len(nearest) > 1:
                targets[row] = self._graph.cheapest(
                    place, nearest, missed=missed[row], cautious=not explores
                )
        return targets

    def ways(
        self,
        places: IntArray,
        targets: IntArray,
        missed: list[Tries],
        observation: Observation,
        *,
        explores: bool,
    ) -> tuple[IntArray, IntArray]:
        """The places before the next way-points that are not reached yet, and these, [R] each.

        Args:
            places: The places that the rows are at, [R].
            targets: Where their ways lead, [R].
            missed: What each row has missed in its episode.
            observation: What they observe, [R, ...] each.
            explores: Whether changes of the rest are counted on that have never come about.
        """
        if not len(self._graph.roadmap.places):
            return places, places.copy()
        cautious = not explores
        while True:
            way_points = self._graph.next_places(places, targets, missed=missed, cautious=cautious)
            ends = self._graph.roadmap.places[way_points]
            reached = (places != targets) & self._space.reached(ends, observation)
            reached &= self._are_alike(places, way_points)
            if not reached.any():
                return places, way_points
            places = np.where(reached, way_points, places)

    def ends(self, way_points: IntArray, observation: Observation) -> IntArray:
        """The way-points [R], with the rest of their places as it is in an observation, [R]."""
        if self._space.asks_for_all:
            return way_points
        asked = slice(self._space.asked_size)
        position = self._space.achieved(observation).astype(np.float64)
        position[:, asked] = self._graph.roadmap.places[way_points, asked]
        return np.where(way_points == NOWHERE, NOWHERE, self._graph.roadmap.nearest(position))

    def asked(self, way_points: IntArray, aims: FloatArray, observation: Observation) -> FloatArray:
        """The goals of the level below that lead it to way-points [R]; to the aims without one."""
        goals, is_place = aims.astype(np.float64), way_points != NOWHERE
        goals[is_place] = self._graph.roadmap.places[way_points[is_place]]
        return self._space.asked(goals, observation)

    def are_at(self, places: IntArray, goals: FloatArray) -> BoolArray:
        """Return which goals [R, P] are these places [R]; never where there is no goal."""
        if not len(self._graph.roadmap.places):
            return np.zeros(len(goals), np.bool_)
        at: BoolArray = (self._graph.roadmap.places[places] == goals).all(axis=1)
        return at

    def _are_alike(self, places: IntArray, others: IntArray) -> BoolArray:
        """Return which places [R] agree with others in what way-points don't ask for."""
        rest = self._graph.roadmap.places[:, self._space.asked_size :]
        alike: BoolArray = (rest[places] == rest[others]).all(axis=1)
        return alike

    @property
    def _graph(self) -> WayPointGraph:
        return self._memory.graph
