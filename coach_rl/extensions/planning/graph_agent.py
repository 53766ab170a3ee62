"""An agent that plans: it hands down way-points on the shortest path through a graph of places.

It neither has networks nor takes gradient steps. It learns how often the level below gets from one
place to the next, see `way_points`; `places` defines the places, `edge_costs` the cost of a try.
docs/algorithms/graph.md lists every detail and its source.

All plans of a tick are made before the graph changes. So workers that collect for a run plan on a
copy of its graph, and the run learns from the outcomes of their plans.
"""

import time
from collections.abc import Mapping
from typing import ClassVar

import numpy as np

from coach_rl.core.agents import AgentContext, TrainingReport
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.interfaces import GoalPlace, Mark
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive, UnitInterval
from coach_rl.core.records import (
    ActionRequest,
    Array,
    BoolArray,
    End,
    FloatArray,
    IntArray,
    Outcome,
    take,
)
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.state import State
from coach_rl.extensions.planning.edge_costs import EdgeCosts
from coach_rl.extensions.planning.graph_memory import (
    GraphMemory,
    GraphMemoryParameters,
    GraphPlanner,
)
from coach_rl.extensions.planning.graph_rows import NOWHERE, GraphRows, graph_marks
from coach_rl.extensions.planning.place_space import PlaceSpace
from coach_rl.extensions.planning.places import PlaceRecords
from coach_rl.extensions.planning.way_points import WayPointGraph


@parameter_class
class GraphAgentParameters(GraphMemoryParameters):
    """An agent that plans way-points for the level below."""

    fixed_goal: tuple[float, ...] = ()
    """Values of the last elements of the goals of the level below, which places don't have. Where
    places have more elements than the others, way-points are the first ones; one is passed only if
    the rest of the place is met as well, such as keys that were taken. Tries that begin without
    these values, such as those of an ant on its back, don't count for an edge."""
    conditions: GoalSpace | None = None
    """Further elements of places, behind those of goals, which decide whether edges can be passed,
    such as where a block lies. Goals leave them open."""
    exploring: UnitInterval = 0.2
    """Fraction of training's (sub-)episodes that pursue a rarely visited goal, not their own."""
    report_every: Positive[int] = 1000
    """Decisions between reports to the log."""

    def build(self, context: AgentContext) -> "GraphAgent":
        """The agent.

        Raises:
            ConfigurationError: The levels have no goals that could be places of one graph.
        """
        owner = context.place.owner(self.name)
        space = PlaceSpace.between(
            context.place, owner, fixed_goal=self.fixed_goal, conditions=self.conditions
        )
        if not space.requests_all and self.places.grow:
            raise ConfigurationError(
                f"{owner}: way-points are the first {space.requested_size} of a place's "
                f"{space.size} elements and the rest must be met, so all places must be there from "
                f"the start; got places={self.places}; set places=GridPlaces(spacing=...)"
            )
        if self.conditions is not None:
            self.conditions.check(context.spaces.observation)
        if self.costs.need_states and not self.places.are_visited:
            raise ConfigurationError(
                f"{owner}: the critic evaluates observations made at a place, and places of "
                f"{type(self.places).__name__} may never have been visited; got costs={self.costs};"
                " set places=FarthestPoints()"
            )
        costs = self.costs.build(owner, context.place, self.fixed_goal)
        return GraphAgent(self, space=space, costs=costs)


class GraphAgent(Saved):
    """Plans at every decision; learns from the outcomes of its way-points.

    Args:
        params: The agent's parameters.
        space: What places are made of.
        costs: What edges cost.
    """

    TIMED: ClassVar[Mapping[str, str]] = {"_plan": "plan"}
    SAVED: ClassVar[SavedNames] = (
        SavedAttribute("_memory", inline=True),
        "_decisions",
        "_reported_at",
        "_priced_at",
    )

    def __init__(
        self, params: GraphAgentParameters, *, space: PlaceSpace, costs: EdgeCosts
    ) -> None:
        self.name = params.name
        self._params = params
        self._space = space
        self.explores = params.exploring > 0
        self._memory = GraphMemory(params, space=space, costs=costs)
        self._planner = GraphPlanner(self._memory, space)
        self._decisions = self._reported_at = self._priced_at = 0
        self._planning_seconds = 0.0

    @property
    def graph(self) -> WayPointGraph:
        """The graph, with its edges' statistics."""
        return self._memory.graph

    @property
    def records(self) -> PlaceRecords:
        """Records of the places."""
        return self._memory.records

    def new_rows(self, num_envs: int, seed: int) -> GraphRows:
        size = self._space.way_point_size

        def noise(name: str, size: int) -> RowNoise:
            name = f"{self.name} {name}"
            return RowNoise(num_rows=num_envs, size=size, kind="uniform", seed=seed, name=name)

        return GraphRows.new(
            num_envs,
            place_size=self._space.size,
            goal_size=size,
            noise=noise("exploring", 1 + self.records.numbers),
            heatup_noise=noise("heat-up", size),
        )

    def act(self, row_state: GraphRows, request: ActionRequest, clock: Clock) -> FloatArray:
        if row_state.followed is not None:
            row_state.take(row_state.followed, request.rows)
        elif clock.phase is Phase.HEATUP:
            self._send_random_goals(row_state, request)
        else:
            self._plan(row_state, request, clock)
        if clock.learns and request.episode_start.any():
            self._memory.visit(take(request.observation, request.episode_start))
        return row_state.requested[request.rows]

    def _send_random_goals(self, row_state: GraphRows, request: ActionRequest) -> None:
        """Send random goals of the level below that belong to no place: no edge is tried then."""
        rows = request.rows
        places = self.graph.roadmap.nearest(self._space.achieved(request.observation))
        row_state.missed[rows[request.starts]] = NOWHERE
        row_state.heading[rows] = np.nan
        row_state.place[rows] = row_state.target[rows] = places
        row_state.way_point[rows] = NOWHERE
        row_state.starts_as_requested[rows] = False
        row_state.changes[rows] = self.records.changes
        row_state.requested[rows] = self._space.random_sub_goals(row_state.heatup_noise.draw(rows))

    def _plan(self, row_state: GraphRows, request: ActionRequest, clock: Clock) -> None:
        """Choose the next way-points and keep them in the row state."""
        began = time.perf_counter()
        rows = request.rows
        explores = clock.phase is not Phase.TEST or clock.samples
        places = self.graph.roadmap.nearest(self._space.achieved(request.observation))
        row_state.missed[rows[request.starts]] = NOWHERE
        self._choose_heading(row_state, request, places, explores=explores)
        aims = self._space.aims(row_state.heading[rows], request.observation)
        missed = row_state.missed_tries(rows, self.records)
        targets = self._planner.targets(aims, places, missed, explores=explores)
        places, way_points = self._planner.ways(
            places, targets, missed, request.observation, explores=explores
        )
        # A place that is explored is reached where it is the nearest one.
        arrives = (places == targets) & ~self._planner.are_at(targets, row_state.heading[rows])
        way_points[arrives] = NOWHERE
        row_state.place[rows] = places
        row_state.way_point[rows] = way_points
        row_state.target[rows] = targets
        row_state.starts_as_requested[rows] = self._space.starts_as_requested(request.observation)
        row_state.changes[rows] = self.records.changes
        row_state.requested[rows] = self._planner.sub_goals(way_points, aims, request.observation)
        seconds = time.perf_counter() - began
        row_state.planned += len(rows)
        row_state.planning_seconds += seconds
        if clock.learns:
            self._planning_seconds += seconds

    def observe(self, row_state: GraphRows, outcome: Outcome, clock: Clock) -> None:
        rows, passed, missed = outcome.rows, *_try_outcomes(outcome.below)
        way_points = row_state.way_point[rows]
        ends = self._planner.ends(way_points, outcome.observation)
        in_vain = (way_points != NOWHERE) & (missed | (passed & (ends != way_points)))
        row_state.remember_misses(rows[in_vain])
        if not clock.learns:
            return
        self._decisions += len(rows)
        since = row_state.changes[rows]
        began_there = self.records.have_stood(row_state.place[rows], since)
        self.records.visit(row_state.place[rows[began_there]])
        now = np.full(len(rows), NOWHERE)
        achieved = self._space.achieved(take(outcome.observation, in_vain))
        now[in_vain] = self.graph.roadmap.nearest(achieved)
        self._memory.note(row_state, rows, ends=ends, passed=passed, missed=missed, now=now)
        self._memory.visit(outcome.observation)

    def cut_off(self, row_state: GraphRows, rows: IntArray, clock: Clock) -> None:
        """Does nothing: nothing is learned from decisions without an outcome."""

    def restart_rows(self, row_state: GraphRows) -> None:
        row_state.heading[:] = np.nan
        row_state.missed[:] = NOWHERE

    def train(self, clock: Clock) -> TrainingReport | None:
        every = self._params.costs.every
        if every is not None and self._decisions - self._priced_at >= every:
            self._memory.reprice()
            self._priced_at = self._decisions
        decisions = self._decisions - self._reported_at
        if decisions < self._params.report_every:
            return None
        self._reported_at = self._decisions
        tried = self.graph.tries > 0
        metrics = {
            "graph/places_visited": float((self.records.visits > 0).mean()),
            "graph/edges_tried": float(tried.mean()) if len(tried) else 0.0,
            "graph/edges_passed": float(self.graph.passed[tried].mean()) if tried.any() else 1.0,
            "time/planning": self._planning_seconds,
        }
        self._planning_seconds = 0.0
        return TrainingReport(training_steps=0, metrics=metrics)

    def planning(self, row_state: GraphRows) -> dict[str, float]:
        """Size of the graph, and time that a decision took to plan; see `PlanningAgent`."""
        roadmap = self.graph.roadmap
        planned = row_state.planned
        figures = {
            "graph_places": float(len(roadmap.places)),
            "graph_edges": float(len(roadmap.begins)),
        }
        if self._params.prune_after is not None:
            figures["graph_pruned_edges"] = float(self.graph.pruned.sum())
        if planned:
            figures["planning_seconds"] = row_state.planning_seconds / planned
        row_state.planned = 0
        row_state.planning_seconds = 0.0
        return figures

    def marks(self, row_state: GraphRows, row: int, place: GoalPlace) -> list[Mark]:
        """The edges that were tried, and the way-point and heading of a row."""
        return graph_marks(
            self.graph,
            lambda values: place(values[: self._space.goal_size]),
            begin=int(row_state.place[row]),
            way_point=int(row_state.way_point[row]),
            heading=row_state.heading[row],
        )

    def policy_state_dict(self) -> State:
        return self._memory.state_dict()

    def load_policy(self, state: State) -> None:
        self._memory.load_state_dict(state)

    def description(self) -> str:
        roadmap = self.graph.roadmap
        return f"graph: {len(roadmap.places):,} places, {len(roadmap.begins):,} edges"

    def _choose_heading(
        self, row_state: GraphRows, request: ActionRequest, places: IntArray, *, explores: bool
    ) -> None:
        """Choose places to explore where (sub-)episodes start.

        A row returns to its own goal when it has reached the place that it explored, or has
        been sent to a goal between places.
        """
        rows = request.rows
        roadmap = self.graph.roadmap
        heading = row_state.heading[rows]
        arrived = (roadmap.nearest(heading) == places) & self._planner.are_at(places, heading)
        was_sent = row_state.way_point[rows] == NOWHERE
        row_state.heading[rows[arrived | was_sent | request.starts]] = np.nan
        if not explores:
            return
        starts = rows[request.starts & ~request.greedy]
        if not len(starts):
            return
        numbers = row_state.noise.draw(starts)
        chosen = self.records.to_explore(numbers[:, 1:])
        has_chosen = numbers[:, :1] < self._params.exploring
        row_state.heading[starts] = np.where(has_chosen, chosen, np.nan)


def _try_outcomes(below: Array) -> tuple[BoolArray, BoolArray]:
    """[R] the level below reached its goal; [R] it used up its horizon, or failed, and did not.

    Unlike `core.records.missed`, whatever else ended there: penalties and failures depend on who
    caused an end, edges on how often they are passed in the time available.
    """
    passed: BoolArray = (below & int(End.GOAL)) > 0
    missed: BoolArray = ~passed & ((below & int(End.HORIZON | End.FAILURE)) > 0)
    return passed, missed
