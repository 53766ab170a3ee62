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
ANT_MAZE = (
    "#####",
    "#...#",
    "###.#",
    "#S..#",
    "#####",
)
"""Ant Maze of HIRO (Nachum et al. 2018)."""
ANT_PUSH = (
    "#####",
    "##.##",
    "#.B.#",
    "#.S##",
    "#####",
)
"""Ant Push of HIRO; `B` is a block that can be pushed."""
ANT_FALL = (
    "####",
    "#..#",
    "#~~#",
    "#.B#",
    "#S.#",
    "####",
)
"""Ant Fall of HIRO; `~` is a gap."""
ANT_U = (
    "#####",
    "#G..#",
    "###.#",
    "#S..#",
    "#####",
)
"""The U of DHRL (Lee et al. 2022), 12 or 24 m wide; its goal of evaluations is `G`."""
ANT_CORRIDOR = (
    "###",
    "#G#",
    "#.#",
    "#.#",
    "#.#",
    "#.#",
    "#S#",
    "###",
)
"""A corridor for practice, of no paper."""
ANT_S = (
    "#######",
    "#....G#",
    "#.#####",
    "#.....#",
    "#####.#",
    "#S....#",
    "#######",
)
"""The S of BEAG (Yoon et al. 2024)."""
ANT_W = (
    "#######",
    "#.....#",
    "#G###.#",
    "###...#",
    "#S###.#",
    "#.....#",
    "#######",
)
"""The W of BEAG."""
ANT_PI = (
    "#######",
    "#.....#",
    "##.#.##",
    "#..#..#",
    "#.###.#",
    "#.S#G.#",
    "#######",
)
"""The Pi of BEAG."""
ANT_COMPLEX = (
    "#########",
    "#.#G#.G.#",
    "#.....#.#",
    "#.#G#.###",
    "#.###..##",
    "#...##.##",
    "###.#.G.#",
    "#S..#...#",
    "#########",
)
"""The complex maze of DHRL, 56 m wide, with four goals of evaluations."""
ANT_PUSH_SPARSE = (
    "#####",
    "##G##",
    "#.B.#",
    "#.S##",
    "#####",
)
"""Ant Push of LESSON, HESS and HLPS: HIRO's, with its goal of evaluations in the upper cell."""
ANT_FALL_SPARSE = (
    "####",
    "#G.#",
    "#~~#",
    "#.B#",
    "#S.#",
    "####",
)
"""Ant Fall of LESSON, HESS and HLPS."""
ANT_FOUR_ROOMS_SPARSE = (
    "###########",
    "#....#...G#",
    "#.........#",
    "#....#....#",
    "#....#....#",
    "##.#####.##",
    "#....#....#",
    "#.........#",
    "#.S..#....#",
    "#....#....#",
    "###########",
)
"""Ant FourRooms of LESSON, HESS and HLPS, 18 m wide."""
ANT_KEY_CHEST = (
    "#######",
    "#G....#",
    "#####.#",
    "#1....#",
    "#####.#",
    "#S....#",
    "#######",
)
"""The maze of SSE (Hwang et al. 2026) with a key `1` on a side way to the chest `G`."""
ANT_DOUBLE_KEY_CHEST = (
    "#######",
    "#..1###",
    "#.#####",
    "#.....#",
    "#.#.#.#",
    "#S#2#G#",
    "#######",
)
"""The maze of SSE with two keys, to be taken in this order."""


@dataclass(frozen=True)
class MazeMap:
    """A checked map.

    `#` is wall, `S` a cell where episodes may start, `G` one where goals may lie. `.` is free:
    where no `S` is on the map every free cell may be a start, and the same for goals.

    Args:
        rows: Of the map, from above, equally long.
        more_signs: Signs that the world knows besides; they are in nobody's way.

    Raises:
        ParameterError: The map is not a closed rectangle of these signs, or has no way from a start
            to a goal in another cell.
    """

    rows: tuple[str, ...]
    more_signs: str = ""

    def __post_init__(self) -> None:
        rows, signs = self.rows, "#.SG" + self.more_signs
        require(
            len(rows) >= 3 and all(len(row) == len(rows[0]) >= 3 for row in rows),
            f"a maze must be 3 or more rows of 3 or more signs, equally many, got {rows}",
        )
        strange = sorted(set("".join(rows)) - set(signs))
        known = ", ".join(f"'{sign}'" for sign in signs[:-1])
        require(not strange, f"a maze has the signs {known} and '{signs[-1]}' only, got {strange}")
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
