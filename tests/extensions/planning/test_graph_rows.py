"""The memory that an agent that plans has of each row."""

import numpy as np

from coach_rl.core.row_noise import RowNoise
from coach_rl.extensions.planning.graph_rows import NOWHERE, GraphRows


def rows():
    noise = [
        RowNoise(num_rows=3, size=2, kind="uniform", seed=0, name=name)
        for name in ("exploring", "heat-up")
    ]
    return GraphRows.new(3, place_size=2, goal_size=1, noise=noise[0], heatup_noise=noise[1])


class Standing:
    """Records of thirty places that stand where they are since so many changes."""

    def __init__(self, **since):
        self.since = np.zeros(30, np.int64)
        for place, changes in since.items():
            self.since[int(place.strip("_"))] = changes

    def have_stood(self, places, since):
        return (places != NOWHERE) & (self.since[places] <= since)


def tries(memory, rows, records=None):
    """What these rows have missed."""
    return memory.missed_tries(np.array(rows), records or Standing())


def miss(memory, rows, begin, end):
    """Let these rows have missed a way-point."""
    memory.place[rows], memory.way_point[rows] = begin, end
    memory.remember_misses(np.array(rows))


def test_each_row_remembers_its_last_sixteen_misses():
    memory = rows()
    miss(memory, [0, 2], 5, 6)
    miss(memory, [2], 4, 7)
    assert tries(memory, [0, 1, 2]) == [((5, 6),), (), ((4, 7), (5, 6))]
    for end in range(20):
        miss(memory, [1], 1, end)
    assert tries(memory, [1]) == [tuple((1, end) for end in range(4, 20))]
    assert tries(memory, [0]) == [((5, 6),)]


def test_misses_are_forgotten_once_one_of_their_places_is_elsewhere():
    memory = rows()
    memory.changes[:] = 3
    miss(memory, [0], 5, 6)
    memory.changes[:] = 8
    miss(memory, [0], 6, 7)
    assert tries(memory, [0], Standing(_5=3, _7=8)) == [((5, 6), (6, 7))]
    assert tries(memory, [0], Standing(_6=4)) == [((6, 7),)], "6 was moved between the two"
    assert tries(memory, [0], Standing(_7=9)) == [((5, 6),)]
