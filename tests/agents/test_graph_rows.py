"""The memory that an agent that plans has of each row."""

import numpy as np

from coach_rl.agents.graph_rows import NOWHERE, GraphRows
from coach_rl.core.row_noise import RowNoise
from coach_rl.testing import assert_same_state


def rows(seed=0):
    noise = RowNoise(num_rows=3, size=2, kind="uniform", seed=seed, name="exploring")
    return GraphRows.new(3, place_size=2, goal_size=1, noise=noise)


def miss(memory, rows, begin, end):
    """Let these rows have missed a way-point."""
    memory.place[rows], memory.way_point[rows] = begin, end
    memory.remember_misses(np.array(rows))


def test_rows_that_have_not_decided_yet_head_for_their_goal():
    memory = rows()
    assert memory.way_point.tolist() == [NOWHERE] * 3
    assert np.isnan(memory.heading).all()
    assert memory.missed_tries(np.arange(3)) == [(), (), ()]


def test_each_row_remembers_its_last_sixteen_misses():
    memory = rows()
    miss(memory, [0, 2], 5, 6)
    miss(memory, [2], 4, 7)
    assert memory.missed_tries(np.arange(3)) == [((5, 6),), (), ((4, 7), (5, 6))]
    for end in range(20):
        miss(memory, [1], 1, end)
    (tries,) = memory.missed_tries(np.array([1]))
    assert tries == tuple((1, end) for end in range(4, 20))
    assert memory.missed_tries(np.array([0])) == [((5, 6),)]


def test_decisions_made_elsewhere_are_taken_row_by_row():
    memory, elsewhere = rows(), rows()
    elsewhere.place[:], elsewhere.way_point[:] = [3, 4, 5], [6, 7, 8]
    elsewhere.asked[:] = [[1.0], [2.0], [3.0]]
    memory.follow(elsewhere.decisions())
    assert memory.followed is not None
    memory.take(memory.followed, np.array([0, 2]))
    assert memory.place.tolist() == [3, 0, 5]
    assert memory.way_point.tolist() == [6, NOWHERE, 8]
    assert memory.asked.tolist() == [[1.0], [0.0], [3.0]]


def test_saved_rows_go_on_alike():
    one, other = rows(seed=1), rows(seed=2)
    one.heading[1] = [0.5, 1.5]
    miss(one, [0], 2, 3)
    one.noise.draw(np.array([1]))
    other.load_state_dict(one.state_dict())
    assert_same_state(other.state_dict(), one.state_dict())
    np.testing.assert_array_equal(one.noise.draw(np.arange(3)), other.noise.draw(np.arange(3)))
    miss(other, [0], 4, 5)
    assert one.missed_tries(np.array([0])) == [((2, 3),)], "states are copies"
