"""The cells that an agent sees in a grid, by MiniGrid's rules in a fraction of its time.

MiniGrid copies the part of the grid before the agent, turns it up to four times and walks over its
cells. Here tables give the places of that part by the agent's position, and the cells of each row
that are seen.
"""

from functools import cache
from typing import Any

from coach_rl.environments.minigrid.symbols import EMPTY, WALL, symbol_of

FORWARD = ((1, 0), (0, 1), (-1, 0), (0, -1))
"""Steps of an agent to the right, down, left and up, (x, y) each."""


def seen_symbols(env: Any, wall: Any) -> bytes:
    """The symbols of an agent's view, as `MiniGridEnv.gen_obs` encodes them.

    Args:
        env: A `MiniGridEnv`.
        wall: A grey wall, which stands for all places outside the grid.

    Returns:
        V * V symbols, V times those of a column, from the farthest cell to the agent's.
    """
    grid = env.grid
    size = env.agent_view_size
    x, y = env.agent_pos
    places = _places(grid.width, grid.height, size, int(x), int(y), int(env.agent_dir))
    cells = [*grid.grid, wall]
    seen = bytearray(size * size)
    everything = (1 << size) - 1
    lit = everything if env.see_through_walls else 1 << size // 2
    for row in range(size - 1, -1, -1):
        transparent = 0
        symbols = []
        for column, place in enumerate(places[row]):
            cell = cells[place]
            if cell is None:
                transparent |= 1 << column
                symbols.append(EMPTY)
            elif cell.type == "wall":
                symbols.append(WALL if cell.color == "grey" else symbol_of(cell))
            else:
                transparent |= cell.see_behind() << column
                symbols.append(symbol_of(cell))
        if not env.see_through_walls:
            lit, above = _lit(lit, transparent, size)
        for column in _columns(lit):
            seen[column * size + row] = symbols[column]
        if env.see_through_walls:
            continue
        lit = above
        if not lit:
            break
    seen[(size // 2 + 1) * size - 1] = symbol_of(env.carrying)
    return bytes(seen)


@cache
def _places(
    width: int, height: int, size: int, x: int, y: int, direction: int
) -> tuple[tuple[int, ...], ...]:
    """Places in a grid's list of the cells of a view, by its rows; the farthest is first.

    A place outside the grid is `width * height`.
    """
    ahead_x, ahead_y = FORWARD[direction]
    right_x, right_y = -ahead_y, ahead_x
    rows = []
    for row in range(size):
        ahead = size - 1 - row
        places = []
        for column in range(size):
            right = column - size // 2
            i = x + ahead * ahead_x + right * right_x
            j = y + ahead * ahead_y + right * right_y
            is_inside = 0 <= i < width and 0 <= j < height
            places.append(j * width + i if is_inside else width * height)
        rows.append(tuple(places))
    return tuple(rows)


@cache
def _lit(lit: int, transparent: int, size: int) -> tuple[int, int]:
    """The cells of a row that are seen, and those of the row behind that this row lets see.

    `Grid.process_vis`: a seen transparent cell shows its neighbours, and those behind all three.
    Cells are bits.

    Args:
        lit: The cells that the row before lets see.
        transparent: The row's cells that can be seen through.
        size: The row's length.
    """
    above = 0
    for columns, step in ((range(size - 1), 1), (range(size - 1, 0, -1), -1)):
        for column in columns:
            if lit & transparent & 1 << column:
                neighbours = 1 << column + step
                lit |= neighbours
                above |= neighbours | 1 << column
    return lit, above


@cache
def _columns(lit: int) -> tuple[int, ...]:
    """The places of the bits of a row."""
    return tuple(column for column in range(lit.bit_length()) if lit >> column & 1)
