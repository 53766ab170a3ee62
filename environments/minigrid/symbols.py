"""Symbols of cells: one byte each for what a cell has, its colour and its state."""

from itertools import product
from typing import Any

import numpy as np

from coach_rl.core.records import Array

OBJECTS = 11
"""Kinds of cells: unseen, empty, wall, floor, door, key, ball, box, goal, lava, agent."""
COLOURS = 6
"""Red, green, blue, purple, yellow, grey."""
STATES = 3
"""Open, closed, locked; open as well for all but doors."""
PLANES = OBJECTS + COLOURS + STATES
"""Planes of a one-hot view, in this order, as in MiniGrid's OneHotPartialObsWrapper."""

UNSEEN = 0
"""The symbol of a cell that the agent doesn't see."""


def symbol(kind: int, colour: int, state: int) -> int:
    """The symbol of MiniGrid's three numbers of a cell."""
    return (kind * COLOURS + colour) * STATES + state


EMPTY = symbol(1, 0, 0)
"""The symbol of an empty cell."""
WALL = symbol(2, 5, 0)
"""The symbol of a grey wall."""
AGENT = symbol(10, 0, 0)
"""The symbol of the agent's cell in views of the whole grid."""


def _one_hot() -> Array:
    table = np.zeros((OBJECTS * COLOURS * STATES, PLANES), np.int8)
    for kind, colour, state in product(range(OBJECTS), range(COLOURS), range(STATES)):
        row = table[symbol(kind, colour, state)]
        row[[kind, OBJECTS + colour, OBJECTS + COLOURS + state]] = 1
    return table


ONE_HOT = _one_hot()
"""The planes of each symbol, int8 [198, 20]."""


def symbol_of(cell: Any) -> int:
    """The symbol of an object of MiniGrid; None is an empty cell."""
    return EMPTY if cell is None else symbol(*cell.encode())
