"""Mazes as rows of text, and what can be asked of them."""

from dataclasses import dataclass

from coach_rl.core.errors import require

Cell = tuple[int, int]
"""Row and column, counted from the upper left."""

U = (
    "#####",
    "#...#",
    "###.#",
    "#...#",
    "#####",
)
"""One wall to go around."""
MEDIUM = (
    "########",
    "#..##..#",
    "#..#...#",
    "##...###",
    "#..#...#",
    "#.#..#.#",
    "#...#..#",
    "########",
)
"""The medium maze of D4RL (Fu et al. 2020)."""
LARGE = (
    "############",
    "#....#.....#",
    "#.##.#.#.#.#",
    "#......#...#",
    "#.####.###.#",
    "#..#.#.....#",
    "##.#.#.#.###",
    "#..#...#...#",
    "############",
)
"""The large maze of D4RL."""
FOUR_ROOMS = (
    "###########",
    "#....#....#",
    "#....#....#",
    "#.........#",
    "#....#....#",
    "##.####.###",
    "#....#....#",
    "#....#....#",
    "#.........#",
    "#....#....#",
    "###########",
)
"""Four rooms, each with a door to both of its neighbours, after Sutton, Precup and Singh 1999."""


@dataclass(frozen=True)
class MazeMap:
    """A checked map.

    `#` is wall, `S` a cell where episodes may start, `G` one where goals may lie. `.` is free:
    where no `S` is on the map every free cell may be a start, and the same for goals.

    Args:
        rows: Of the map, from above, equally long.

    Raises:
        ParameterError: The map is not a closed rectangle of these signs, or has no way from a start
            to a goal in another cell.
    """

    rows: tuple[str, ...]

    def __post_init__(self) -> None:
        rows = self.rows
        require(
            len(rows) >= 3 and all(len(row) == len(rows[0]) >= 3 for row in rows),
            f"a maze must be 3 or more rows of 3 or more signs, equally many, got {rows}",
        )
        strange = sorted(set("".join(rows)) - set("#.SG"))
        require(not strange, f"a maze has the signs '#', '.', 'S' and 'G' only, got {strange}")
        edge = rows[0] + rows[-1] + "".join(row[0] + row[-1] for row in rows)
        require(set(edge) == {"#"}, f"a maze must have walls '#' all around, got {rows}")
        starts, goals = self.starts, self.goals
        require(
            len(starts) > 0 and len(goals) > 0 and len({*starts, *goals}) > 1,
            f"a maze needs a free cell to start in and another one for the goal, got {rows}",
        )
        reachable = self.distances(starts[0])
        for cell in (*starts, *goals):
            require(
                cell in reachable,
                f"the maze has no way from row {starts[0][0]}, column {starts[0][1]} to "
                f"row {cell[0]}, column {cell[1]}: {rows}",
            )

    @property
    def starts(self) -> tuple[Cell, ...]:
        """Where episodes may start."""
        return self._cells("S") or self._cells(".SG")

    @property
    def goals(self) -> tuple[Cell, ...]:
        """Where goals may lie."""
        return self._cells("G") or self._cells(".SG")

    @property
    def walls(self) -> list[tuple[int, int, int]]:
        """Walls as runs along a row: row, first column, number of columns."""
        runs = []
        for row, signs in enumerate(self.rows):
            first = None
            for column, sign in enumerate(signs + "."):
                if sign == "#" and first is None:
                    first = column
                elif sign != "#" and first is not None:
                    runs.append((row, first, column - first))
                    first = None
        return runs

    def distances(self, start: Cell) -> dict[Cell, int]:
        """Steps from cell to neighbouring cell to every cell that can be reached."""
        found, border = {start: 0}, [start]
        while border:
            row, column = border.pop(0)
            for cell in (
                (row + 1, column),
                (row - 1, column),
                (row, column + 1),
                (row, column - 1),
            ):
                if cell not in found and self.rows[cell[0]][cell[1]] != "#":
                    found[cell] = found[row, column] + 1
                    border.append(cell)
        return found

    def _cells(self, signs: str) -> tuple[Cell, ...]:
        return tuple(
            (row, column)
            for row, line in enumerate(self.rows)
            for column, sign in enumerate(line)
            if sign in signs
        )
