"""Angles go around the circle; other elements are left alone to the bit."""

import numpy as np
import pytest

from coach_rl.core.goals import turned_into, wrapped

BOUNDS = np.array([-np.pi, -9.0]), np.array([np.pi, 9.0])


@pytest.mark.parametrize(
    ("angle", "same"), [(3.0, 3.0), (4.0, 4.0 - 2 * np.pi), (-10.0, 4 * np.pi - 10)]
)
def test_differences_take_the_short_way(angle, same):
    values = np.array([[angle, 8.0]])
    np.testing.assert_allclose(wrapped(values.copy(), (0,)), [[same, 8.0]])
    np.testing.assert_array_equal(wrapped(values.copy(), ()), values)


def test_angles_are_turned_into_their_bounds_and_others_stay_to_the_bit():
    values = np.array([[4.0, 20.0], [0.1 + 0.2, -20.0]])
    turned = turned_into(values, (0,), BOUNDS)
    np.testing.assert_allclose(turned, [[4.0 - 2 * np.pi, 20.0], [0.1 + 0.2, -20.0]])
    assert turned[1, 0] == 0.1 + 0.2
    assert values[0, 0] == 4.0, "what was given stays"
