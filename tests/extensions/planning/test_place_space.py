"""The elements of a place of a graph, worked out by hand."""

import numpy as np
import pytest

from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.extensions.planning.place_space import PlaceSpace

# An ant sees x, y, how upright it is, the number of its keys and where a block lies.
SEEN = {
    "observation": np.array([[1.0, 2.0, 0.9, 1.0, 7.0], [3.0, 4.0, -1.0, 0.0, 8.0]]),
    GOAL_KEY: np.array([[5.0, 5.0, 1.0], [6.0, 6.0, 1.0]]),
}


def goals(elements, *, high=9.0, **settings):
    low, high = (0.0,) * len(elements), (high,) * len(elements)
    bounds = {"low": low, "high": high, "threshold": (0.5,) * len(elements)}
    return GoalSpace(**bounds, key="observation", elements=elements, **settings)


BLOCK = goals((4,))


def places(*, conditions=BLOCK, **settings):
    """Places of x, y, keys and the block; way-points of x, y and how upright the ant is."""
    sub_goal = goals((0, 1, 2), reached_within="elements", **settings)
    own = goals((0, 1, 3), high=8.0)
    return PlaceSpace(own=own, sub_goal=sub_goal, fixed_goal=(1.0,), conditions=conditions)


@pytest.mark.parametrize(
    ("settings", "asked"),
    [({}, [[4, 4, 1], [9, 0, 1]]), ({"relative": True}, [[3, 2, 0.1], [7, -4, 2]])],
    ids=["absolute", "relative"],
)
def test_the_level_below_asks_for_all_the_first_elements_and_what_is_besides(settings, asked):
    action = places(**settings).sub_goals(
        np.array([[4.0, 4.0, 0.0, 7.0], [10.0, 0.0, 1.0, 7.0]]), SEEN
    )
    assert action.dtype == np.float32
    np.testing.assert_allclose(action, asked, rtol=1e-6)


def test_an_ant_on_its_back_has_not_what_asks_for_all():
    space = places()
    there = np.array([[1.2, 2.0, 0.0, 0.0], [3.0, 4.0, 0.0, 8.0]])  # in x and y, each row's own
    np.testing.assert_array_equal(space.reached(there, SEEN), [True, False])
    np.testing.assert_array_equal(space.starts_as_requested(SEEN), [True, False])
