"""The graph that an agent plans on, with its statistics, and the choice of ways over it."""

from dataclasses import field
from typing import Annotated

import numpy as np
from annotated_types import Interval

from coach_rl.core.errors import SpaceError
from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, Positive, UnitInterval
from coach_rl.core.records import BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.state import State
from coach_rl.extensions.planning.edge_costs import EdgeCosts, EdgeCostsParameters, EdgeLengths
from coach_rl.extensions.planning.graph_rows import NOWHERE, GraphRows
from coach_rl.extensions.planning.place_space import PlaceSpace
from coach_rl.extensions.planning.places import (
    GridPlaces,
    PlaceRecords,
    Places,
    PlacesParameters,
)
from coach_rl.extensions.planning.way_points import Tries, WayPointGraph


@parameter_class
class GraphMemoryParameters:
    """A graph over places, whose edges have costs and statistics of the tries to pass them."""

    name: NonEmpty[str] = "graph"
    """The agent's name in logs and files."""
    places: PlacesParameters = field(default_factory=GridPlaces)
    """The places: a grid over all or over visited goals, or points that cover visited goals."""
    costs: EdgeCostsParameters = field(default_factory=EdgeLengths)
    """The costs of a try to pass an edge: its length, or steps by the critic of the level below."""
    forgetting: UnitInterval = 0.2
    """Lowest weight of a try in the averages of edges: of many, the last 1 / forgetting count. 0:
    all edges count as always passed, and only the cost of a try matters."""
    lowest_probability: Annotated[float, Interval(gt=0, le=1)] = 0.02
    """Lower bound of the estimated probability of passing an edge."""
    prune_after: Positive[int] | None = None
    """Misses in a row from which on an edge is pruned: ways lead along it only where there are no
    others, until it is passed again. It is not removed altogether, since then a place with no other
    edges would be out of reach for good, though the level below has learned to get there meanwhile.
    None: an edge only becomes more expensive, down to `lowest_probability`. BEAG's program drops
    places after 4 misses."""
    retry_discount: Annotated[float, Interval(ge=0, lt=1)] = 0.5
    """Share of an edge's probability that each miss takes off in the plans of the row that missed
    it, until its (sub-)episode ends. 0: its plans ignore its misses."""
    setbacks: bool = False
    """True if a miss costs as much as it lengthens the way. For trained levels below: one that
    still learns to walk is set back anywhere but in front of walls."""


class GraphMemory:
    """Places, their records, and a graph over them.

    Args:
        params: The places, and how tries count.
        space: The elements of places.
        costs: Costs of edges.
    """

    graph: WayPointGraph
    """The edges, with their statistics."""
    records: PlaceRecords
    """Records of the places."""

    def __init__(
        self, params: GraphMemoryParameters, *, space: PlaceSpace, costs: EdgeCosts
    ) -> None:
        self._params = params
        self._space = space
        self._costs = costs
        self.replace(self._new_places())

    def replace(self, places: Places) -> None:
        """Replace the places; nothing is known of their edges but the lengths."""
        self._places = places
        params = self._params
        self.graph = WayPointGraph(
            places.roadmap,
            forgetting=params.forgetting,
            lowest_probability=params.lowest_probability,
            prune_after=params.prune_after,
            retry_discount=params.retry_discount,
            missed=self._costs.missed,
            requested=self._space.requested_size,
            goal=self._space.goal_size,
        )
        self.records = PlaceRecords(places)

    def visit(self, observation: Observation) -> None:
        """Record visited positions; may change the set of places."""
        if not self._params.places.grow:
            return
        states = {key: values for key, values in observation.items() if key != GOAL_KEY}
        kept = states if self._params.costs.need_states else {}
        changed = self._places.visit(self._space.achieved(observation), kept)
        if not len(changed):
            return
        self._price(self.graph.change(self._places.roadmap, changed))
        self.records.change(changed)

    def reprice(self) -> None:
        """Recompute the costs of all edges."""
        self._price(np.arange(len(self.graph.roadmap.begins)))

    def note(
        self,
        row_state: GraphRows,
        rows: IntArray,
        *,
        ends: IntArray,
        passed: BoolArray,
        missed: BoolArray,
        now: IntArray,
    ) -> None:
        """Update edge statistics from the outcomes of decisions of rows [R].

        Args:
            row_state: Their decisions.
            rows: [R].
            ends: Places where the decisions ended, [R].
            passed: Rows that reached their way-points, [R].
            missed: Rows that missed them, [R].
            now: Places from which rows that missed continue, [R]; -1 where that teaches nothing.
        """
        begins = row_state.place[rows]
        way_points = row_state.way_point[rows]
        since = row_state.changes[rows]
        known = (passed | missed) & (way_points != NOWHERE) & row_state.starts_as_requested[rows]
        known &= self.records.have_stood(begins, since)
        known &= self.records.have_stood(way_points, since)
        targets = row_state.target[rows]
        for row in known.nonzero()[0]:
            self.graph.note(
                int(begins[row]),
                int(way_points[row]),
                passed=bool(passed[row]),
                came_to=int(ends[row]),
                setback=self._setback(int(begins[row]), int(now[row]), int(targets[row])),
            )

    def state_dict(self) -> State:
        return {
            "places": self._places.state_dict(),
            "graph": self.graph.state_dict(),
            **self.records.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        places = self._new_places()
        graph = state.get("graph")
        another = f"agent '{self._params.name}' has another graph than the one that was saved"
        try:
            if graph is not None:
                places.load_state_dict(state["places"])
        except SpaceError as error:
            raise SpaceError(f"{another}: {error}") from error
        if graph is None or np.shape(graph["edge_passed"]["counts"]) != places.roadmap.begins.shape:
            raise SpaceError(another)
        self.replace(places)
        self.graph.load_state_dict(graph)
        self.records.load_state_dict(state)

    def _new_places(self) -> Places:
        """The places as they are at the beginning."""
        return self._params.places.build(*self._space.bounds, self._space.requested_size)

    def _price(self, edges: IntArray) -> None:
        """Recompute the costs of these edges."""
        costs = self.graph.try_costs.copy()
        costs[edges] = self._costs.of(self.graph.roadmap, self._places.states, edges)
        self.graph.try_costs = costs

    def _setback(self, begin: int, now: int, target: int) -> float | None:
        """The length by which the way to a target is longer now than where a try began.

        None where that is not known, such as where nothing leads to the target any more. No way
        leads out of a gap that no row has ever left.
        """
        if now == NOWHERE or not self._params.setbacks:
            return None
        places = np.array([begin, now])
        targets = np.array([target, target])
        before, after = self.graph.costs(places, targets, cautious=True)
        return float(after - before) if np.isfinite(before) else None


class GraphPlanner:
    """Paths of rows over a graph.

    Args:
        memory: The graph.
        space: The elements of its places.
    """

    def __init__(self, memory: GraphMemory, space: PlaceSpace) -> None:
        self._memory = memory
        self._space = space

    def targets(
        self, aims: FloatArray, places: IntArray, missed: list[Tries], *, explores: bool
    ) -> IntArray:
        """The places that are nearest to aims, [R].

        Of several that are equally near, and of what an aim leaves open, it is what the cheapest
        way leads to.

        Args:
            aims: Goals that the rows pursue, [R, P]; nan where they leave an element open.
            places: The places that the rows are at, [R].
            missed: What each row has missed in its episode.
            explores: Whether ways may rely on changes of the rest that have never been observed.
        """
        roadmap = self._graph.roadmap
        targets = np.zeros_like(places)
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
            explores: Whether ways may rely on changes of the rest that have never been observed.
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
        if self._space.requests_all:
            return way_points
        requested = slice(self._space.requested_size)
        position = self._space.achieved(observation).astype(np.float64)
        position[:, requested] = self._graph.roadmap.places[way_points, requested]
        return np.where(way_points == NOWHERE, NOWHERE, self._graph.roadmap.nearest(position))

    def sub_goals(
        self, way_points: IntArray, aims: FloatArray, observation: Observation
    ) -> FloatArray:
        """The goals of the level below that lead it to way-points [R]; to the aims without one."""
        goals = aims.astype(np.float64)
        is_place = way_points != NOWHERE
        goals[is_place] = self._graph.roadmap.places[way_points[is_place]]
        return self._space.sub_goals(goals, observation)

    def are_at(self, places: IntArray, goals: FloatArray) -> BoolArray:
        """Return which goals [R, P] are these places [R]; never where there is no goal."""
        if not len(self._graph.roadmap.places):
            return np.zeros(len(goals), np.bool_)
        at: BoolArray = (self._graph.roadmap.places[places] == goals).all(axis=1)
        return at

    def _are_alike(self, places: IntArray, others: IntArray) -> BoolArray:
        """Return which places [R] agree with others in the elements that goals below lack."""
        rest = self._graph.roadmap.places[:, self._space.requested_size :]
        alike: BoolArray = (rest[places] == rest[others]).all(axis=1)
        return alike

    @property
    def _graph(self) -> WayPointGraph:
        return self._memory.graph
