import warnings
from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import CoachWarning
from coach_rl.core.goals import GoalRounding, GoalSpace, turned_into, wrapped
from coach_rl.core.parameter_classes import parameter_class

PLANE = GoalSpace(low=(-1.0, -2.0), high=(1.0, 2.0), threshold=(0.25, 0.5), elements=(2, 0))
SEEN = {"observation": np.array([[0.5, 9.0, 0.25], [-1.0, 9.0, 0.0]])}


def test_goal_space_without_rows_returns_empty_arrays():
    none = {"observation": np.zeros((0, 3))}
    assert PLANE.achieved(none).shape == (0, 2)
    assert PLANE.reached(np.zeros((0, 2)), none).shape == (0,)
    assert PLANE.verdict(np.zeros((0, 2)), none).reward.shape == (0,)


def test_check_observation_that_fits_passes():
    PLANE.check(spaces.Dict({"observation": spaces.Box(0, 1, (3,))}))
    whole = GoalSpace(low=(0.0,), high=(1.0,), threshold=(0.1,))
    whole.check(spaces.Dict({"observation": spaces.Box(0, 1, (1,))}))


def test_achieved_without_elements_is_the_whole_flattened_key():
    space = GoalSpace(low=(0.0,) * 4, high=(1.0,) * 4, threshold=(0.1,) * 4, key="map")
    seen = {"map": np.arange(8.0).reshape(2, 2, 2)}
    np.testing.assert_array_equal(space.achieved(seen), [[0, 1, 2, 3], [4, 5, 6, 7]])


def test_reached_every_element_within_its_threshold_edges_included():
    goal = np.array([[0.5, 1.0], [0.25, -0.25]])
    # row 0: differences 0.25 and 0.5, both exactly at the threshold; row 1: 0.25 and 0.75
    np.testing.assert_array_equal(PLANE.reached(goal, SEEN), [True, False])


def test_space_relative_has_the_largest_differences_as_bounds():
    np.testing.assert_array_equal(PLANE.space.low, [-1.0, -2.0])
    relative = GoalSpace(low=(-1.0, 0.0), high=(1.0, 5.0), threshold=(0, 0), relative=True)
    np.testing.assert_array_equal(relative.space.low, [-2.0, -5.0])
    np.testing.assert_array_equal(relative.space.high, [2.0, 5.0])
    np.testing.assert_array_equal(relative.shown["desired_goal"].low, [-1.0, 0.0])
    assert relative.space.dtype == np.float32


TURNED = GoalSpace(
    low=(-np.pi, -5.0), high=(np.pi, 5.0), threshold=(0.2, 0.2), elements=(0, 1), angles=(0,)
)
NEAR_PI = {"observation": np.array([[3.0, 1.0], [-3.0, 1.0]], np.float32)}


def test_target_relative_angles_go_around_the_circle():
    relative = replace(TURNED, relative=True, reach=(1.0, 2.0))
    target = relative.target(np.array([[0.5, 1.0], [-0.5, -9.0]], np.float32), NEAR_PI)
    np.testing.assert_allclose(target, [[3.5 - 2 * np.pi, 2.0], [2 * np.pi - 3.5, -5.0]], 1e-5)
    asked = relative.asked_by(target, NEAR_PI)
    np.testing.assert_allclose(asked, [[0.5, 1.0], [-0.5, -2.0]], 1e-5)


@pytest.mark.parametrize(
    ("angle", "same"), [(7.0, 7.0 - 2 * np.pi), (3.5, 3.5 - 2 * np.pi), (-20.0, 6 * np.pi - 20.0)]
)
def test_target_angle_out_of_bounds_is_the_same_angle_within_them(angle, same):
    unwrapped = {"observation": np.array([[angle, 1.0]], np.float32)}
    action = TURNED.asked_by(TURNED.achieved(unwrapped), unwrapped)
    np.testing.assert_allclose(action, [[same, 1.0]], atol=1e-5)
    target = TURNED.target(np.array([[angle, 9.0]], np.float32), unwrapped)
    np.testing.assert_allclose(target, [[same, 5.0]], atol=1e-5)
    assert TURNED.reached(TURNED.target(action, unwrapped), unwrapped).all()
    np.testing.assert_array_equal(unwrapped["observation"], np.array([[angle, 1.0]], np.float32))


def test_turned_angles_within_the_bounds_stay_to_the_bit():
    pi = np.float32(np.pi)
    goal = np.array([[pi, 0.0], [-pi, 0.0], [3.1, 9.0]], np.float32)
    for moved in (TURNED.turned(goal), TURNED.target(goal, {}), TURNED.asked_by(goal, {})):
        np.testing.assert_array_equal(moved[:, 0], goal[:, 0])
    wide = replace(TURNED, low=(-20.0, -5.0), high=(20.0, 5.0))
    np.testing.assert_array_equal(wide.turned(6 * goal), 6 * goal)


def test_turned_angles_fit_bounds_that_are_not_about_0():
    compass = replace(TURNED, low=(0.0, -5.0), high=(2 * np.pi, 5.0))
    seen = {"observation": np.array([[4.0, 0.0], [-1.0, 0.0], [6.0, 0.0]], np.float32)}
    same = [4.0, 2 * np.pi - 1.0, 6.0]
    action = compass.asked_by(compass.achieved(seen), seen)
    np.testing.assert_allclose(action[:, 0], same, atol=1e-5)
    relative = replace(compass, relative=True, reach=(1.0, 1.0))
    target = relative.target(np.array([[0.5, 0.0]] * 3, np.float32), seen)
    np.testing.assert_allclose(target[:, 0], [4.5, 2 * np.pi - 0.5, 6.5 - 2 * np.pi], atol=1e-5)


@parameter_class
class Farther(GoalSpace):
    def difference(self, goal, observation):
        return 2 * super().difference(goal, observation)


@parameter_class
class FartherAway(GoalSpace):
    def difference_of(self, goal, achieved):
        return 2 * super().difference_of(goal, achieved)


def test_goal_space_with_its_own_difference_of_judges_by_it():
    line = {"low": (-5.0,), "high": (5.0,), "threshold": (1.0,)}
    own = FartherAway(**line)
    own.check(spaces.Dict({"observation": spaces.Box(-9, 9, (1,), np.float32)}))
    seen = {"observation": np.array([[0.4], [0.6]], np.float32)}
    goal = np.zeros((2, 1), np.float32)
    assert own.verdict(goal, seen).reached.tolist() == [True, False]
    assert own.is_over(goal, seen).tolist() == own.reached(goal, seen).tolist() == [True, False]


BOUNDS = np.array([-np.pi, -9.0]), np.array([np.pi, 9.0])


@pytest.mark.parametrize(
    ("angle", "same"), [(3.0, 3.0), (4.0, 4.0 - 2 * np.pi), (-10.0, 4 * np.pi - 10)]
)
def test_wrapped_differences_take_the_short_way(angle, same):
    values = np.array([[angle, 8.0]])
    np.testing.assert_allclose(wrapped(values.copy(), (0,)), [[same, 8.0]])
    np.testing.assert_array_equal(wrapped(values.copy(), ()), values)


def test_turned_into_other_elements_stay_to_the_bit():
    values = np.array([[4.0, 20.0], [0.1 + 0.2, -20.0]])
    turned = turned_into(values, (0,), BOUNDS)
    np.testing.assert_allclose(turned, [[4.0 - 2 * np.pi, 20.0], [0.1 + 0.2, -20.0]])
    assert turned[1, 0] == 0.1 + 0.2
    assert values[0, 0] == 4.0, "what was given stays"


def rounding_warnings(space, *goals):
    """Warnings about the bounds of a goal space, and about goals [R, G]."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        check = GoalRounding(space)
        for each in goals:
            check.check(np.asarray(each))
    assert all(issubclass(each.category, CoachWarning) for each in warned)
    return [str(each.message) for each in warned]


def on_map(low, high, threshold=0.05):
    return GoalSpace(low=(0.0, low), high=(1.0, high), threshold=(0.05, threshold), key="place")


@pytest.mark.parametrize(("low", "high"), [(5.4e6, 5.6e6), (-5.6e6, -5.4e6), (70_000.3, 1e9)])
def test_goal_rounding_bounds_far_from_0_warn_at_once(low, high):
    (message,) = rounding_warnings(on_map(low, high), [[0.5, 5.5e6 + 0.2]])
    apart = "0.0078125" if low == 70_000.3 else "0.5"
    assert f"float32 numbers are {apart} apart near the goal" in message
    assert "of 'place', and the threshold of element 1 is 0.05" in message
    assert "subtract an origin" in message


@pytest.mark.parametrize(("low", "high"), [(-np.inf, np.inf), (0.0, 1e7), (-1e7, 1e7)])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_goal_rounding_goals_far_from_0_warn_once(low, high, dtype):
    near, far = np.array([[0.5, 3.3]], dtype), np.array([[0.5, 3.3], [0.5, -66_000.3]], dtype)
    space = on_map(low, high)
    assert not rounding_warnings(space, near)
    (message,) = rounding_warnings(space, near, far, far)
    assert "0.0078125 apart near the goal -66000.3" in message


@pytest.mark.parametrize(
    ("goal", "threshold", "warns"),
    [
        (65_535.9, 0.05, False),  # 2**-8 apart: less than a tenth of the threshold
        (65_536.1, 0.05, True),  # 2**-7 apart: more
        (1.0, 1e-6, False),  # a bit, which is exact
        (0.9, 1e-6, False),  # 6e-8 apart
        (1.1, 1e-6, True),  # 1.2e-7 apart
        (5.5e6, 0.0, False),  # goals that have to be equal
        (5.5e6, 100.0, False),
    ],
)
def test_goal_rounding_tenth_of_threshold_is_allowed(goal, threshold, warns):
    found = rounding_warnings(on_map(-1e9, 1e9, threshold), [[0.0, goal]])
    assert bool(found) == warns


def test_goal_rounding_times_behind_goals_do_not_count():
    assert not rounding_warnings(on_map(-1.0, 1.0), np.array([[0.0, 0.5, 1e9]]))
