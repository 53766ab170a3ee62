"""Counts of visits to the surroundings of goals, by which some of them are more novel."""

import numpy as np

from coach_rl.core.records import FloatArray, IntArray
from coach_rl.core.state import State

Cell = tuple[int, ...]
"""Numbers of a cell along each axis."""


class VisitCounts:
    """Visits by cell of a grid over goals of G elements.

    Only visited cells are kept, so that goals may have many elements.

    Args:
        low: Lower bounds of goals, where the first cells begin, [G].
        side: Side of a cell, in units of the goal.
    """

    def __init__(self, low: FloatArray, side: float) -> None:
        self._low, self._side = low, side
        self._counts: dict[Cell, int] = {}

    def visit(self, goals: FloatArray) -> None:
        """Count a visit for each of these goals, [R, G]."""
        for cell in self._cells(goals):
            self._counts[cell] = self._counts.get(cell, 0) + 1

    def of(self, goals: FloatArray) -> IntArray:
        """Visits to the cells of these goals [R, G], [R]."""
        return np.array([self._counts.get(cell, 0) for cell in self._cells(goals)], np.int64)

    def state_dict(self) -> State:
        """Visited cells, [K, G], and visits, [K]."""
        cells = np.array(list(self._counts), np.int64).reshape(-1, len(self._low))
        return {"cells": cells, "visits": np.array(list(self._counts.values()), np.int64)}

    def load_state_dict(self, state: State) -> None:
        """Go on from saved counts."""
        cells = map(tuple, state["cells"].tolist())
        self._counts = dict(zip(cells, state["visits"].tolist(), strict=True))

    def _cells(self, goals: FloatArray) -> list[Cell]:
        """The cells that goals [R, G] lie in, in double precision: of equals it is the same."""
        corners = np.floor((goals.astype(np.float64) - self._low) / self._side)
        return list(map(tuple, corners.astype(np.int64).tolist()))
