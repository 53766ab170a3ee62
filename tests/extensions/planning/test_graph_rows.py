"""The memory that an agent that plans has of each row."""

import numpy as np

from coach_rl.core.row_noise import RowNoise
from coach_rl.extensions.planning.graph_rows import NOWHERE, GraphRows
from coach_rl.extensions.testing import assert_same_state


def rows(seed=0):
    noise = [
        RowNoise(num_rows=3, size=2, kind="uniform", seed=seed, name=name)
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


def test_rows_that_have_not_decided_yet_head_for_their_goal():
    memory = rows()
    assert memory.way_point.tolist() == [NOWHERE] * 3
    assert np.isnan(memory.heading).all()
    assert tries(memory, [0, 1, 2]) == [(), (), ()]


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


def test_decisions_made_elsewhere_are_taken_row_by_row():
    memory, elsewhere = rows(), rows()
    elsewhere.place[:], elsewhere.way_point[:] = [3, 4, 5], [6, 7, 8]
    elsewhere.requested[:] = [[1.0], [2.0], [3.0]]
    memory.follow(elsewhere.decisions())
    assert memory.followed is not None
    memory.take(memory.followed, np.array([0, 2]))
    assert memory.place.tolist() == [3, 0, 5]
    assert memory.way_point.tolist() == [6, NOWHERE, 8]
    assert memory.requested.tolist() == [[1.0], [0.0], [3.0]]


def test_saved_rows_go_on_alike():
    one, other = rows(seed=1), rows(seed=2)
    one.heading[1] = [0.5, 1.5]
    miss(one, [0], 2, 3)
    one.changes[:] = 2
    one.noise.draw(np.array([1]))
    one.heatup_noise.draw(np.array([2]))
    other.load_state_dict(one.state_dict())
    assert_same_state(other.state_dict(), one.state_dict())
    np.testing.assert_array_equal(one.noise.draw(np.arange(3)), other.noise.draw(np.arange(3)))
    miss(other, [0], 4, 5)
    assert tries(one, [0]) == [((2, 3),)], "states are copies"
