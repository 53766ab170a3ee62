"""Ways over a graph that begin at the state itself, as in SoRB."""

import numpy as np

from coach_rl.core.records import BoolArray, FloatArray, IntArray, Observation
from coach_rl.extensions.planning.edge_costs import EdgeCosts
from coach_rl.extensions.planning.graph_memory import GraphMemory, GraphPlanner
from coach_rl.extensions.planning.place_space import PlaceSpace
from coach_rl.extensions.planning.roadmap import Roadmap, squared_distances
from coach_rl.extensions.planning.way_points import Tries


class StatePlanner(GraphPlanner):
    """Paths of rows whose first edge leads from their state to a place.

    The way-point is argmin_w d(s, w) + D(w, target) over places w with d(s, w) up to `longest`
    that are not reached yet; D is the cost of the cheapest way over the graph. Where that is the
    target, the target is reached, or no place is that near, the goal itself is sent (Eysenbach et
    al. 2019, section 2.2).
    Tries from the same place count for d as for an edge: one that is passed with the chance p costs
    (1 - p) / p misses besides.

    Args:
        memory: The graph.
        space: The elements of its places.
        costs: Costs of ways from single observations.
        longest: Cost above which no way leads from a state to a place.
        retry_discount: Share of p that each try takes off which the row has missed.
    """

    def __init__(
        self,
        memory: GraphMemory,
        space: PlaceSpace,
        *,
        costs: EdgeCosts,
        longest: float,
        retry_discount: float,
    ) -> None:
        super().__init__(memory, space)
        self._costs = costs
        self._longest = longest
        self._kept = 1 - retry_discount

    def ways(
        self,
        places: IntArray,
        targets: IntArray,
        missed: list[Tries],
        observation: Observation,
        *,
        explores: bool,
    ) -> tuple[IntArray, IntArray]:
        way_points = targets.copy()
        if not len(self._graph.roadmap.places):
            return places, way_points
        steps = self._steps(observation)
        reached = self._reached(observation)
        for row, (place, target) in enumerate(zip(places.tolist(), targets.tolist(), strict=True)):
            passed = self._passed(place, missed[row])
            misses = steps[row] if self._costs.missed is None else self._costs.missed
            first = steps[row] + (1 - passed) / passed * misses
            rest = self._graph.costs_to(target, missed=missed[row], cautious=not explores)
            is_near = (steps[row] <= self._longest) & ~reached[row] & ~reached[row, target]
            total = np.where(is_near, first + rest, np.inf)
            if np.isfinite(total).any():
                way_points[row] = total.argmin()
        # From the target the level above sends the goal itself.
        return np.where(way_points == targets, targets, places), way_points

    def _steps(self, observation: Observation) -> FloatArray:
        """Costs from the states of rows to all places, [R, M]."""
        achieved = self._space.achieved(observation)
        places = self._graph.roadmap.places
        rows = len(achieved)
        count = len(places)
        ways = Roadmap(
            places=places,
            begins=np.arange(rows).repeat(count),
            ends=np.tile(np.arange(count), rows),
            lengths=np.sqrt(squared_distances(achieved, places)).ravel(),
        )
        return self._costs.of(ways, observation, np.arange(rows * count)).reshape(rows, count)

    def _reached(self, observation: Observation) -> BoolArray:
        """True where a row has reached a place, [R, M]."""
        places = self._graph.roadmap.places
        rows = len(next(iter(observation.values())))
        each = {key: values.repeat(len(places), axis=0) for key, values in observation.items()}
        reached = self._space.reached(np.tile(places, (rows, 1)), each)
        return reached.reshape(rows, len(places))

    def _passed(self, place: int, missed: Tries) -> FloatArray:
        """The chances that tries from a place pass, [M]; 1 where nothing is known."""
        roadmap = self._graph.roadmap
        edges = roadmap.edges_from(place)
        passed = np.ones(len(roadmap.places))
        passed[roadmap.ends[edges]] = self._graph.passed[edges]
        for begin, end in missed:
            if begin == place:
                passed[end] *= self._kept
        return passed
