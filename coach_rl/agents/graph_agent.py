"""An agent that plans: it hands down way-points on the shortest path through a graph of places.

It neither has networks nor takes gradient steps. What it learns is how often the level below gets
from one place to the next, see `way_points`; docs/algorithms/graph.md lists every detail and its
source.
"""

import importlib.util
import time
from dataclasses import dataclass

import numpy as np

from coach_rl.agents.graph_marks import graph_marks
from coach_rl.agents.way_points import Grid, WayPointGraph
from coach_rl.core.agents import AgentContext, LevelPlace, TrainingReport
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError, SpaceError, how_to_install
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.marks import GoalPlace, Mark
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive, UnitInterval
from coach_rl.core.records import (
    ActionRequest,
    Array,
    BoolArray,
    End,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    take,
)
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.state import State

_NOWHERE = -1
_EXPLORING_PLACES = 8
"""A row that explores heads for the least visited of so many places drawn at random."""


@parameter_class
class GraphAgentParameters:
    """An agent that plans way-points for the level below."""

    name: str = "graph"
    """The agent's name in logs and files."""
    spacing: Positive[float] = 2.0
    """Distance between neighbouring places along an axis, in units of the goal."""
    forgetting: UnitInterval = 0.2
    """Share of an edge's estimate that a new try replaces."""
    worst: UnitInterval = 0.02
    """Lowest probability of passing an edge that is reckoned with."""
    besides: tuple[float, ...] = ()
    """Values that way-points ask of the goal's elements beyond the place, where the level below has
    goals with more elements than this level's."""
    exploring: UnitInterval = 0.2
    """Fraction of training's (sub-)episodes that head for a rarely visited place, not the goal."""
    report_every: Positive[int] = 1000
    """Decisions between reports to the log."""

    def build(self, context: AgentContext) -> "GraphAgent":
        """The agent.

        Raises:
            ConfigurationError: The package for shortest paths is missing, or the levels have no
                goals that could be places of one graph.
        """
        if importlib.util.find_spec("scipy") is None:
            raise ConfigurationError(
                f"{context.place.owner(self.name)} needs scipy for its shortest paths; "
                f"{how_to_install('graph')}"
            )
        own, sub_goal = self._goals(context.place)
        return GraphAgent(self, own=own, sub_goal=sub_goal)

    def _goals(self, place: LevelPlace) -> tuple[GoalSpace, GoalSpace]:
        """The goals of the agent's own level and of the level below.

        Raises:
            ConfigurationError: One has none, or they are not places in the same coordinates.
        """
        owner = place.owner(self.name)
        place.require_untimed_sub_goals(owner)
        own, sub_goal = place.goal, place.sub_goal
        if own is None or sub_goal is None:
            raise ConfigurationError(
                f"{owner} plans ways to its level's goals along goals of the level below; both need"
                " a goal_space"
            )
        if own.observed != "absolute" or own.size + len(self.besides) != sub_goal.size:
            raise ConfigurationError(
                f"{owner} needs goals that are seen absolutely and, with GraphAgentParameters."
                f"besides, have as many elements as those of the level below; got {own.size} "
                f"({own.observed}), besides={self.besides} and {sub_goal.size}"
            )
        return own, sub_goal


@dataclass(kw_only=True)
class GraphRows:
    """The memory of each row of a stack."""

    place: IntArray
    """[N] the place where the open decision began."""
    way_point: IntArray
    """[N] the place it heads for; -1 where that is the goal itself."""
    heading: IntArray
    """[N] the place that the row explores instead of its goal; -1 for none."""
    missed: IntArray
    """[N] the way-point that the last decision missed, left out by the next one; -1 for none."""
    noise: RowNoise
    """Uniform numbers for exploring."""
    planned: int = 0
    """Decisions that were planned since they were last asked about."""
    planning_seconds: float = 0.0
    """Seconds that these took."""

    def state_dict(self) -> State:
        """Everything."""
        return {
            "place": self.place.copy(),
            "way_point": self.way_point.copy(),
            "heading": self.heading.copy(),
            "missed": self.missed.copy(),
            "noise": self.noise.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state."""
        self.place[:] = state["place"]
        self.way_point[:] = state["way_point"]
        self.heading[:] = state["heading"]
        self.missed[:] = state["missed"]
        self.noise.load_state_dict(state["noise"])


class GraphAgent:
    """Plans anew at every decision; learns from what came of its way-points.

    Args:
        params: The agent's parameters.
        own: The goals of its own level.
        sub_goal: The goals of the level below.
    """

    def __init__(
        self, params: GraphAgentParameters, *, own: GoalSpace, sub_goal: GoalSpace
    ) -> None:
        self.name, self._params = params.name, params
        self._own, self._sub_goal = own, sub_goal
        bounds = np.array(sub_goal.low)[: own.size], np.array(sub_goal.high)[: own.size]
        self.graph = WayPointGraph(
            Grid.over(*bounds, params.spacing), forgetting=params.forgetting, worst=params.worst
        )
        self.visits = np.zeros(len(self.graph.grid.places), np.int64)
        """[M] decisions that began nearest to each place."""
        self._decisions = self._reported_at = 0
        self._planning_seconds = 0.0

    @property
    def explores(self) -> bool:
        """True if it heads for other places than the goal in training."""
        return self._params.exploring > 0

    def new_rows(self, num_envs: int, seed: int) -> GraphRows:
        """Row state for a stack of that size; row i draws from the stream (seed, i)."""
        return GraphRows(
            place=np.zeros(num_envs, np.int64),
            way_point=np.full(num_envs, _NOWHERE),
            heading=np.full(num_envs, _NOWHERE),
            missed=np.full(num_envs, _NOWHERE),
            noise=RowNoise(
                num_rows=num_envs,
                size=1 + _EXPLORING_PLACES,
                kind="uniform",
                seed=seed,
                name=f"{self.name} exploring",
            ),
        )

    def act(self, row_state: GraphRows, request: ActionRequest, clock: Clock) -> FloatArray:
        """The next way-points [R, G], as the level below is to be asked for them."""
        began = time.perf_counter()
        rows, explores = request.rows, clock.phase is not Phase.TEST or clock.samples
        positions = self._sub_goal.achieved(request.observation)[:, : self._own.size]
        goals = request.observation[GOAL_KEY].reshape(len(rows), -1)
        places = self.graph.grid.nearest(positions)
        row_state.missed[rows[request.starts]] = _NOWHERE
        self._choose_heading(row_state, request, places, explores=explores)
        heading = row_state.heading[rows]
        targets = self._targets(goals, heading)
        way_points = self.graph.next_places(places, targets, without=row_state.missed[rows])
        arrives = (places == targets) & (heading == _NOWHERE)
        wanted = np.where(arrives[:, None], goals, self.graph.grid.places[way_points])
        row_state.place[rows] = places
        row_state.way_point[rows] = np.where(arrives, _NOWHERE, way_points)
        seconds = time.perf_counter() - began
        row_state.planned += len(rows)
        row_state.planning_seconds += seconds
        if clock.phase is not Phase.TEST:
            self._planning_seconds += seconds
        return self._asked(wanted, request.observation)

    def observe(self, row_state: GraphRows, outcome: Outcome, clock: Clock) -> None:
        """Remember which way-points were missed; learn which edges were passed, unless in TEST."""
        rows = outcome.rows
        reached, failed = _results(outcome.below)
        begins, ends = row_state.place[rows], row_state.way_point[rows]
        row_state.missed[rows] = np.where(failed, ends, _NOWHERE)
        if clock.phase is Phase.TEST:
            return
        np.add.at(self.visits, begins, 1)
        self._decisions += len(rows)
        self._note(begins, ends, reached, failed)

    def observe_fork(self, row_state: GraphRows, rows: IntArray, below: Array) -> None:
        """Learn which of the edges that these rows have tried were passed."""
        self._note(row_state.place[rows], row_state.way_point[rows], *_results(below))

    @property
    def proposes(self) -> bool:
        """True: there are other ways."""
        return True

    def propose(
        self, row_state: GraphRows, alternatives: GraphRows, request: ActionRequest, clock: Clock
    ) -> FloatArray:
        """Other neighbouring places, by the cost of the way through them, [R, count, G].

        Where there are fewer than that, the last is repeated.
        """
        rows = request.rows
        count = len(alternatives.place) // len(row_state.place)
        goals = request.observation[GOAL_KEY].reshape(len(rows), -1)
        places, targets = row_state.place[rows], self._targets(goals, row_state.heading[rows])
        others = np.empty((len(rows), count), np.int64)
        for i, (place, target) in enumerate(zip(places, targets, strict=True)):
            ranked = self.graph.neighbours(int(place), int(target))
            ranked = ranked[ranked != row_state.way_point[rows[i]]]
            others[i] = ranked[np.minimum(np.arange(count), len(ranked) - 1)]
        alternatives.place.reshape(-1, count)[rows] = places[:, None]
        alternatives.way_point.reshape(-1, count)[rows] = others
        seen = take(request.observation, np.arange(len(rows)).repeat(count))
        asked = self._asked(self.graph.grid.places[others.ravel()], seen)
        return asked.reshape(len(rows), count, -1)

    def adopt(
        self, row_state: GraphRows, alternatives: GraphRows, rows: IntArray, numbers: IntArray
    ) -> None:
        """Let rows head for alternatives instead; see `core.agents.ProposingAgent`."""
        count = len(alternatives.place) // len(row_state.place)
        row_state.way_point[rows] = alternatives.way_point[rows * count + numbers]

    def cut_off(self, row_state: GraphRows, rows: IntArray, clock: Clock) -> None:
        """Nothing is learned from a decision that nothing came of."""

    def restart_rows(self, row_state: GraphRows) -> None:
        """Rows that begin anew head for a place chosen anew."""
        row_state.heading[:] = _NOWHERE
        row_state.missed[:] = _NOWHERE

    def train(self, clock: Clock) -> TrainingReport | None:
        """Report what was learned, every so many decisions; there are no gradient steps."""
        decisions = self._decisions - self._reported_at
        if decisions < self._params.report_every:
            return None
        self._reported_at = self._decisions
        tried = self.graph.tries > 0
        metrics = {
            "graph/places_visited": float((self.visits > 0).mean()),
            "graph/edges_tried": float(tried.mean()),
            "graph/edges_passed": float(self.graph.passed[tried].mean()) if tried.any() else 1.0,
            "time/planning": self._planning_seconds,
        }
        self._planning_seconds = 0.0
        return TrainingReport(training_steps=0, metrics=metrics)

    def planning(self, row_state: GraphRows) -> dict[str, float]:
        """Size of the graph, and time that a decision took to plan; see `PlanningAgent`."""
        grid, planned = self.graph.grid, row_state.planned
        figures = {
            "graph_places": float(len(grid.places)),
            "graph_edges": float(len(grid.begins)),
        }
        if planned:
            figures["planning_seconds"] = row_state.planning_seconds / planned
        row_state.planned, row_state.planning_seconds = 0, 0.0
        return figures

    def marks(self, row_state: GraphRows, row: int, place: GoalPlace) -> list[Mark]:
        """The edges that were tried, and the way-point and heading of a row."""
        state = (row_state.place, row_state.way_point, row_state.heading)
        begin, way_point, heading = (int(of[row]) for of in state)
        return graph_marks(self.graph, place, begin=begin, way_point=way_point, heading=heading)

    def trajectories(self) -> dict[str, Array]:
        """Nothing is kept but counts."""
        return {}

    def state_dict(self) -> State:
        """Everything but the rows, which belong to the levels."""
        return {
            **self.policy_state_dict(),
            "decisions": self._decisions,
            "reported_at": self._reported_at,
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state."""
        self.load_policy(state)
        self._decisions = state["decisions"]
        self._reported_at = state["reported_at"]

    def policy_state_dict(self) -> State:
        """The graph, with what was learned of its edges."""
        return {"graph": self.graph.state_dict(), "visits": self.visits.copy()}

    def load_policy(self, state: State) -> None:
        """Start from what an equal agent knew elsewhere; SpaceError for another graph's."""
        graph = state.get("graph")
        if graph is None or np.shape(graph["tries"]) != self.graph.tries.shape:
            raise SpaceError(f"agent '{self.name}' has another graph than the one that was saved")
        self.graph.load_state_dict(graph)
        self.visits[:] = state["visits"]

    def description(self) -> str:
        """The graph, for people."""
        grid = self.graph.grid
        return f"graph: {len(grid.places):,} places, {len(grid.begins):,} edges"

    def _asked(self, places: FloatArray, observation: Observation) -> FloatArray:
        """The goals of the level below that lead it to these places, [R, G]."""
        besides = np.tile(self._params.besides, (len(places), 1))
        return self._sub_goal.asked_by(np.hstack([places, besides]).astype(np.float32), observation)

    def _targets(self, goals: Array, heading: IntArray) -> IntArray:
        """The places that rows with these goals [R, G] and headings [R] end up at, [R]."""
        return np.where(heading == _NOWHERE, self.graph.grid.nearest(goals), heading)

    def _note(
        self, begins: IntArray, ends: IntArray, reached: BoolArray, failed: BoolArray
    ) -> None:
        """Learn from edges that were passed, and from those that were not, [R] each."""
        for place in ((reached | failed) & (ends != _NOWHERE)).nonzero()[0]:
            self.graph.note(int(begins[place]), int(ends[place]), passed=bool(reached[place]))

    def _choose_heading(
        self, row_state: GraphRows, request: ActionRequest, places: IntArray, *, explores: bool
    ) -> None:
        """Choose what to head for where (sub-)episodes start; from a place reached, the goal."""
        rows = request.rows
        arrived = row_state.heading[rows] == places
        row_state.heading[rows[arrived | request.starts]] = _NOWHERE
        if not explores:
            return
        starts = rows[request.starts & ~request.greedy]
        if not len(starts):
            return
        numbers = row_state.noise.draw(starts)
        candidates = (numbers[:, 1:] * len(self.visits)).astype(np.int64)
        least = self.visits[candidates].argmin(axis=1)
        chosen = candidates[np.arange(len(starts)), least]
        row_state.heading[starts] = np.where(
            numbers[:, 0] < self._params.exploring, chosen, _NOWHERE
        )


def _results(below: Array) -> tuple[BoolArray, BoolArray]:
    """[R] each: the level below reached the way-point; it used up its horizon without doing so."""
    reached: BoolArray = (below & int(End.GOAL)) > 0
    failed: BoolArray = ~reached & ((below & int(End.HORIZON)) > 0)
    return reached, failed
