"""Maps of mazes as rows of text: cells, runs of cells, ways."""

from dataclasses import dataclass

from coach_rl.core.errors import require

Cell = tuple[int, int]
"""Row and column, counted from the upper left."""


@dataclass(frozen=True)
class MazeMap:
    """A checked map of a maze.

    `#` is wall, `S` a cell where episodes may start, `G` one where goals may lie. `.` is free:
    where no `S` is on the map every free cell may be a start, and the same for goals.

    Args:
        rows: Rows of the map from above, equally long.
        more_signs: Further signs of the world; an ant can walk on their cells.

    Raises:
        ParameterError: The map is not a closed rectangle of these signs, or has no way from a start
            to a goal in another cell.
    """

    rows: tuple[str, ...]
    more_signs: str = ""

    def __post_init__(self) -> None:
        rows = self.rows
        signs = "#.SG" + self.more_signs
        require(
            len(rows) >= 3 and all(len(row) == len(rows[0]) >= 3 for row in rows),
            f"a maze must be 3 or more rows of 3 or more signs, equally many, got {rows}",
        )
        strange = sorted(set("".join(rows)) - set(signs))
        known = ", ".join(f"'{sign}'" for sign in signs[:-1])
        require(not strange, f"a maze has the signs {known} and '{signs[-1]}' only, got {strange}")
        edge = rows[0] + rows[-1] + "".join(row[0] + row[-1] for row in rows)
        require(set(edge) == {"#"}, f"a maze must have walls '#' all around, got {rows}")
        starts = self.starts
        goals = self.goals
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
        """Cells in which episodes may start."""
        return self.cells("S") or self.cells(".SG")

    @property
    def goals(self) -> tuple[Cell, ...]:
        """Cells in which goals may lie."""
        return self.cells("G") or self.cells(".SG")

    def runs(self, signs: str) -> list[tuple[int, int, int]]:
        """Neighbouring cells with any of these signs: row, first column, number of columns."""
        runs = []
        for row, line in enumerate(self.rows):
            first = None
            for column, is_of_them in enumerate([*(sign in signs for sign in line), False]):
                if is_of_them and first is None:
                    first = column
                elif not is_of_them and first is not None:
                    runs.append((row, first, column - first))
                    first = None
        return runs

    def cells(self, signs: str) -> tuple[Cell, ...]:
        """All cells with any of these signs."""
        return tuple(
            (row, column)
            for row, line in enumerate(self.rows)
            for column, sign in enumerate(line)
            if sign in signs
        )

    def distances(self, start: Cell) -> dict[Cell, int]:
        """Numbers of steps from cell to neighbouring cell, to every reachable cell."""
        found = {start: 0}
        border = [start]
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
