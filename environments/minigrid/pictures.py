"""Pictures of what an agent sees, put together from MiniGrid's tiles."""

import importlib
from typing import Any

import numpy as np

from coach_rl.core.records import Array
from coach_rl.environments.minigrid.symbols import COLOURS, EMPTY, ONE_HOT, STATES, UNSEEN

UP = 3
"""The agent's direction in its own view."""


class Tiles:
    """Pictures of views; MiniGrid draws each kind of cell once.

    Args:
        side: Pixels of a cell's side.
    """

    def __init__(self, side: int) -> None:
        self._side = side
        self._draw = importlib.import_module("minigrid.core.grid").Grid.render_tile
        self._decode = importlib.import_module("minigrid.core.world_object").WorldObj.decode
        self._tiles = np.zeros((len(ONE_HOT), side, side, 3), np.uint8)
        self._known = set[int]()
        self._agents: dict[int, Array] = {}
        """The agent's cell, by the symbol of what it carries."""

    def picture(self, symbols: bytes, size: int) -> Array:
        """The picture of a view, uint8 [V * side, V * side, 3], as `get_frame` draws it.

        Args:
            symbols: See `seen_symbols`.
            size: V.
        """
        for symbol in set(symbols) - self._known:
            self._tiles[symbol] = self._drawn(symbol, highlight=symbol != UNSEEN)
            self._known.add(symbol)
        tiles = self._tiles[np.frombuffer(symbols, np.uint8)]
        cells = tiles.reshape(size, size, self._side, self._side, 3)  # columns, rows, y, x, RGB
        side = size * self._side
        picture = cells.transpose(1, 2, 0, 3, 4).reshape(side, side, 3)
        carried = symbols[(size // 2 + 1) * size - 1]
        if carried not in self._agents:
            self._agents[carried] = self._drawn(carried, highlight=True, agent_dir=UP)
        left = size // 2 * self._side
        picture[-self._side :, left : left + self._side] = self._agents[carried]
        return picture

    def _drawn(self, symbol: int, **options: Any) -> Array:
        kind, colour, state = np.unravel_index(symbol, (len(ONE_HOT), COLOURS, STATES))
        is_empty = symbol in (UNSEEN, EMPTY)
        cell = None if is_empty else self._decode(int(kind), int(colour), int(state))
        drawn: Array = self._draw(cell, tile_size=self._side, **options)
        return drawn
