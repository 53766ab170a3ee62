"""The places of a graph: a grid, or points that cover the goals that were visited.

GraphAgentParameters(places=GridPlaces(spacing=0.5))
GraphAgentParameters(places=GridPlaces(spacing=0.5, visited=True))
GraphAgentParameters(places=FarthestPoints(count=100))
"""

from typing import ClassVar, Protocol

import numpy as np

from coach_rl.core.errors import ConfigurationError, SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.records import BoolArray, FloatArray, IntArray, Observation, take
from coach_rl.core.saved import Saved
from coach_rl.core.state import State
from coach_rl.extensions.planning.roadmap import Roadmap, squared_distances

_MOST_PLACES = 1_000_000
"""Largest number of places of a grid: a graph of as many takes some gigabytes."""
_DRAWN = 8
"""Goals drawn at random for a row that explores."""


class Places(Protocol):
    """Places of a graph, and their states."""

    @property
    def roadmap(self) -> Roadmap:
        """The places, and which are joined by edges."""
        ...

    @property
    def states(self) -> Observation:
        """Observations made at each place, [M, ...] each; empty if places may be unvisited."""
        ...

    @property
    def numbers(self) -> int:
        """Uniform numbers that a goal worth exploring is drawn by."""
        ...

    def drawn(self, numbers: FloatArray) -> FloatArray:
        """Goals [..., G] that may be worth exploring, drawn by uniform numbers [..., numbers]."""
        ...

    def visit(self, goals: FloatArray, states: Observation) -> IntArray:
        """Record visited goals; may change the set of places.

        Args:
            goals: [R, G].
            states: Observations made there, [R, ...] each.

        Returns:
            The places that are new or have moved.
        """
        ...

    def state_dict(self) -> State:
        """Everything that changes."""
        ...

    def load_state_dict(self, state: State) -> None:
        """Restore a saved state; SpaceError for places in other goals."""
        ...


class PlacesParameters(Protocol):
    """A frozen description of where the places of a graph are."""

    @property
    def are_visited(self) -> bool:
        """True if each place was visited, so that observations made there are available."""
        ...

    @property
    def grow(self) -> bool:
        """True if there are none at first, and visited goals bring them about."""
        ...

    def build(self, low: FloatArray, high: FloatArray, requested: int) -> Places:
        """The places between bounds [G] of goals; way-points are their first `requested` elements.

        Every edge leads to another way-point: the level below gets no other goals.
        """
        ...


@parameter_class
class GridPlaces:
    """Places at equal distances over all goals, or over those that were visited.

    All as in BEAG (Yoon et al. 2024, "Breadth-First Exploration on Adaptive Grid for Reinforcement
    Learning"). For goals of two or three elements: the number of places grows exponentially with
    theirs.
    """

    are_visited: ClassVar[bool] = False  # neighbours of visited places may be unvisited

    spacing: Positive[float] | tuple[Positive[float], ...] = 2.0
    """Distance between neighbouring places along an axis, in units of the goal; a number for each
    element of the goal, or one for all."""
    visited: bool = False
    """True if only visited places and their neighbours, diagonal ones included, belong to the
    graph. So no way leads through unknown terrain, and the graph grows by a place in each direction
    as far as the level below gets. A goal beyond is approached from the nearest place."""

    @property
    def grow(self) -> bool:
        """True for a grid over visited goals."""
        return self.visited

    def build(self, low: FloatArray, high: FloatArray, requested: int) -> Places:
        """The grid; ConfigurationError for spacings of other goals, or for too many places."""
        spacings = self.spacing if isinstance(self.spacing, tuple) else (self.spacing,)
        if len(spacings) not in (1, len(low)):
            raise ConfigurationError(
                f"GridPlaces.spacing must have a number for each element of the goal, {len(low)}, "
                f"or one for all; got {self.spacing}"
            )
        count = float(np.maximum(1, np.round((high - low) / self.spacing)).prod())
        if count > _MOST_PLACES:
            raise ConfigurationError(
                f"GridPlaces.spacing={self.spacing} makes {count:,.0f} places, {_MOST_PLACES:,} at "
                "most; choose a larger one"
            )
        grid = Roadmap.grid(low, high, self.spacing, moving=requested)
        return _VisitedGrid(grid) if self.visited else _Grid(grid)


@parameter_class
class FarthestPoints:
    """Visited goals that cover all that were visited, for goals of any number of elements.

    Of the goals visited, the one farthest from all places is the next place (farthest-point
    sampling, as in HIGL and DHRL; Kim et al. 2021, Lee et al. 2022). They recompute the
    places from a replay memory from time to time; here places come one by one, and stay, so that
    what was learned about the edges between them stays as well.
    """

    are_visited: ClassVar[bool] = True
    grow: ClassVar[bool] = True

    count: Positive[int] = 100
    """Places at most. From then on a goal becomes a place if it is farther from all places than the
    two closest places are from one another, one of which it replaces."""
    spacing: NonNegative[float] = 0.0
    """Distance from all places, in units of the goal, at which a goal does not become one."""
    neighbours: Positive[int] = 8
    """Number of nearest places to which each has edges, in both directions."""

    def build(self, low: FloatArray, high: FloatArray, requested: int) -> Places:
        """The places; none at the beginning. Way-points are all of their elements."""
        return _Cover(self, low, high)


class _Grid:
    """Places that never change."""

    numbers = 1

    def __init__(self, grid: Roadmap) -> None:
        self.roadmap = self._grid = grid
        self.states: Observation = {}

    def drawn(self, numbers: FloatArray) -> FloatArray:
        """Goals [..., G] that may be worth exploring: places of the whole grid."""
        places = self._grid.places
        return places[(numbers[..., 0] * len(places)).astype(np.int64)]

    def visit(self, goals: FloatArray, states: Observation) -> IntArray:
        """Nothing changes."""
        return np.zeros(0, np.int64)

    def state_dict(self) -> State:
        """The places, by which another grid is recognised."""
        return {"places": self.roadmap.places.copy()}

    def load_state_dict(self, state: State) -> None:
        """Nothing changes; SpaceError for the places of another grid."""
        if not np.array_equal(state["places"], self.roadmap.places):
            raise SpaceError("the places that were saved are those of another grid")


class _VisitedGrid(_Grid):
    """The visited places of a grid and their neighbours.

    Args:
        grid: All of its places.
    """

    def __init__(self, grid: Roadmap) -> None:
        super().__init__(grid)
        self._take(np.zeros(0, np.int64))

    def visit(self, goals: FloatArray, states: Observation) -> IntArray:
        """Add the places nearest to these goals, and their neighbours."""
        grid = self._grid
        count = len(self._known)
        visited = np.unique(grid.nearest(goals))
        around = [grid.ends[grid.edges_from(place)] for place in visited.tolist()]
        new = np.setdiff1d(np.concatenate([visited, *around]), self._known)
        if len(new):
            self._take(np.append(self._known, new))
        return np.arange(count, len(self._known))

    def _take(self, known: IntArray) -> None:
        """The graph has the places of these numbers in the grid from now on."""
        self._known, self.roadmap = known, self._grid.part(known)

    def state_dict(self) -> State:
        """The places, and their numbers in the grid."""
        return {"places": self.roadmap.places.copy(), "known": self._known.copy()}

    def load_state_dict(self, state: State) -> None:
        """Restore a saved state; SpaceError for places of another grid."""
        places = self._grid.places
        known = state.get("known")
        if (
            known is None
            or known.max(initial=0) >= len(places)
            or not np.array_equal(places[known], state["places"])
        ):
            raise SpaceError("the places that were saved are those of another grid")
        self._take(known.copy())


class _Cover:
    """Visited goals, as far from each other as they are.

    Args:
        params: How many, and how far.
        low: Lower bounds of goals, [G].
        high: Upper bounds.
    """

    def __init__(self, params: FarthestPoints, low: FloatArray, high: FloatArray) -> None:
        self._params = params
        self._low = low
        self._width = high - low
        self.numbers = len(low)
        self.states: Observation = {}
        self.roadmap = Roadmap.of_neighbours(np.zeros((0, len(low))), params.neighbours)

    def drawn(self, numbers: FloatArray) -> FloatArray:
        """Goals [..., G] that may be worth exploring, from anywhere within the bounds.

        The place nearest to such a goal is often at the border of what was visited, since there
        are most of the goals that have no nearer one (LaValle 1998).
        """
        drawn: FloatArray = self._low + numbers * self._width
        return drawn

    def visit(self, goals: FloatArray, states: Observation) -> IntArray:
        """Add goals that are far from all places, the farthest first."""
        places = self.roadmap.places.copy()
        changed = set[int]()
        kept = {key: values.copy() for key, values in self.states.items()}
        closest, slot = self._closest(places)
        while True:
            squares = squared_distances(goals, places)
            far = squares.min(axis=1, initial=np.inf) > self._params.spacing**2
            gaps = np.where(far, squares.min(axis=1, initial=np.inf), 0.0)  # [R]
            chosen = int(gaps.argmax())
            if gaps[chosen] <= closest:
                break
            if slot == len(places):
                places = np.append(places, goals[[chosen]], axis=0)
                new = take(states, np.array([chosen]))
                kept = {key: np.append(kept[key], new[key], axis=0) for key in kept} or new
            else:
                places[slot] = goals[chosen]
                for key, values in kept.items():
                    values[slot] = states[key][chosen]
            changed.add(slot)
            closest, slot = self._closest(places)
        if changed:
            self.states = kept
            self.roadmap = Roadmap.of_neighbours(places, self._params.neighbours)
        return np.array(sorted(changed), np.int64)

    def _closest(self, places: FloatArray) -> tuple[float, int]:
        """The squared distance that a new place must exceed, and the place that it replaces.

        As long as there are not enough places it is the next one and replaces none.
        """
        if len(places) < self._params.count:
            return 0.0, len(places)
        squares = squared_distances(places, places)  # [M, M]
        np.fill_diagonal(squares, np.inf)
        _, later = np.unravel_index(squares.argmin(), squares.shape)
        return float(squares.min()), int(later)

    def state_dict(self) -> State:
        """Places, and the observations made there."""
        states = {key: values.copy() for key, values in self.states.items()}
        return {"places": self.roadmap.places.copy(), "states": states}

    def load_state_dict(self, state: State) -> None:
        """Restore a saved state; SpaceError for goals of another size."""
        places = state["places"]
        if places.shape[1:] != self.roadmap.places.shape[1:]:
            raise SpaceError("the places that were saved are goals of another kind")
        self.states = {key: values.copy() for key, values in state["states"].items()}
        self.roadmap = Roadmap.of_neighbours(places.copy(), self._params.neighbours)


class PlaceRecords(Saved):
    """Counts of visits to M places, and when each last moved.

    Args:
        places: The places; how many there are changes with theirs.
    """

    SAVED = ("visits", "changes", "stands_since")

    def __init__(self, places: Places) -> None:
        self._places = places
        self.numbers = _DRAWN * places.numbers
        """Uniform numbers that a goal to explore is chosen by."""
        self.changes = 1
        """Number of times that places have changed, their beginning included."""
        count = len(places.roadmap.places)
        self.visits = np.zeros(count, np.int64)
        """[M] decisions that began nearest to each place."""
        self.stands_since = np.full(count, self.changes)
        """[M] number of changes of places when each last moved."""

    def visit(self, places: IntArray) -> None:
        """Count decisions that began nearest to these places, [R]."""
        np.add.at(self.visits, places, 1)

    def change(self, changed: IntArray) -> None:
        """Reset the records of places that are new or have moved."""
        added = np.zeros(len(self._places.roadmap.places) - len(self.visits), np.int64)
        self.visits = np.append(self.visits, added)
        self.stands_since = np.append(self.stands_since, added)
        self.changes += 1
        self.visits[changed] = 0
        self.stands_since[changed] = self.changes

    def have_stood(self, places: IntArray, since: IntArray) -> BoolArray:
        """Return which places [R] are where they were when places had changed so often [R]."""
        have_stood = (places >= 0) & (places < len(self.stands_since))
        there = places[have_stood]
        have_stood[have_stood] = self.stands_since[there] <= since[have_stood]
        return have_stood

    def to_explore(self, numbers: FloatArray) -> FloatArray:
        """Goals to explore, [R, P], by uniform `numbers` [R, K * ...].

        Of K goals that are drawn it is the one whose nearest place was visited least often.
        """
        roadmap = self._places.roadmap
        goals = self._places.drawn(numbers.reshape(len(numbers), _DRAWN, -1))
        near = roadmap.nearest(goals.reshape(-1, goals.shape[2])).reshape(goals.shape[:2])
        least = (self.visits[near] if len(self.visits) else near).argmin(axis=1)
        chosen: FloatArray = goals[np.arange(len(goals)), least]
        return chosen
