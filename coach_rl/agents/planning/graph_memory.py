"""The memory of an agent that plans: places, the edges between them, and what came of tries.

`GraphAgent` plans on it.
"""

from typing import TYPE_CHECKING

import numpy as np

from coach_rl.agents.planning.edge_costs import EdgeCosts
from coach_rl.agents.planning.graph_rows import NOWHERE, GraphRows
from coach_rl.agents.planning.place_records import PlaceRecords
from coach_rl.agents.planning.place_space import PlaceSpace
from coach_rl.agents.planning.places import Places
from coach_rl.agents.planning.way_points import WayPointGraph
from coach_rl.core.errors import SpaceError
from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.records import BoolArray, IntArray, Observation
from coach_rl.core.state import State

if TYPE_CHECKING:
    from coach_rl.agents.planning.graph_agent import GraphAgentParameters


class GraphMemory:
    """Places, their records, and a graph over them.

    Args:
        params: The agent's parameters.
        space: What places are made of.
        costs: What edges cost.
    """

    graph: WayPointGraph
    """The edges, with what was learned of them."""
    records: PlaceRecords
    """Records of the places."""

    def __init__(
        self, params: "GraphAgentParameters", *, space: PlaceSpace, costs: EdgeCosts
    ) -> None:
        self._params, self._space, self._costs = params, space, costs
        self._take(self._new_places())

    def visit(self, observation: Observation) -> None:
        """Take note of where rows are; there may be other places then."""
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
        """Ask anew what all edges cost."""
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
        """Learn from what came of the decisions of rows [R].

        Args:
            row_state: Their decisions.
            rows: [R].
            ends: The places they have passed to, [R].
            passed: Which have passed to their way-points, [R].
            missed: Which have missed them, [R].
            now: Where those that have missed go on from, [R]; -1 where that teaches nothing.
        """
        begins, way_points = row_state.place[rows], row_state.way_point[rows]
        since = row_state.changes[rows]
        known = (passed | missed) & (way_points != NOWHERE) & row_state.is_as_asked[rows]
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
        """The graph, with what was learned of its edges."""
        return {
            "places": self._places.state_dict(),
            "graph": self.graph.state_dict(),
            **self.records.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from what an equal agent knew; SpaceError for another graph's."""
        places, graph = self._new_places(), state.get("graph")
        another = f"agent '{self._params.name}' has another graph than the one that was saved"
        try:
            if graph is not None:
                places.load_state_dict(state["places"])
        except SpaceError as error:
            raise SpaceError(f"{another}: {error}") from error
        if graph is None or np.shape(graph["edge_passed"]["counts"]) != places.roadmap.begins.shape:
            raise SpaceError(another)
        self._take(places)
        self.graph.load_state_dict(graph)
        self.records.load_state_dict(state)

    def _new_places(self) -> Places:
        """The places as they are at the beginning."""
        return self._params.places.build(*self._space.bounds, self._space.asked_size)

    def _take(self, places: Places) -> None:
        """Take places of which nothing is known yet."""
        self._places, params = places, self._params
        self.graph = WayPointGraph(
            places.roadmap,
            forgetting=params.forgetting,
            lowest_probability=params.lowest_probability,
            prune_after=params.prune_after,
            retry_discount=params.retry_discount,
            missed=self._costs.missed,
            asked=self._space.asked_size,
            goal=self._space.goal_size,
        )
        self.records = PlaceRecords(places, novelty=params.novelty)

    def _price(self, edges: IntArray) -> None:
        """Ask what these edges cost."""
        costs = self.graph.try_costs.copy()
        costs[edges] = self._costs.of(self.graph.roadmap, self._places.states, edges)
        self.graph.try_costs = costs

    def _setback(self, begin: int, now: int, target: int) -> float | None:
        """The length by which the way to a target is longer now than where a try began.

        None where that is not known, such as where nothing leads to the target any more. No way
        leads out of a gap that nobody has ever come out of.
        """
        if now == NOWHERE or not self._params.setbacks:
            return None
        places, targets = np.array([begin, now]), np.array([target, target])
        before, after = self.graph.costs(places, targets, cautious=True)
        return float(after - before) if np.isfinite(before) else None
