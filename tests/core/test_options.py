import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import ParameterError, RunError, SpaceError
from coach_rl.core.options import OptionSpace


def test_options_are_ones_among_zeros():
    options = OptionSpace(count=3)
    told = options.target(np.array([2, 0]), {})
    np.testing.assert_array_equal(told, [[0, 0, 1], [1, 0, 0]])
    assert options.shown["option"].contains(told[0])
    assert options.space.n == 3
    with pytest.raises(ParameterError, match="count must be int > 0, got 0"):
        OptionSpace(count=0)
    with pytest.raises(SpaceError, match="shows a 'option' of its own"):
        options.check(spaces.Dict({"option": spaces.Box(0, 1, (3,))}))


def height(before, after, given):
    return after["x"] - before["x"] + given


def one_too_many(before, after, given):
    return np.zeros(len(given) + 1)


def is_high(after):
    return after["x"] > 2


def test_options_have_rewards_and_ends_of_their_own():
    options = OptionSpace(count=3, rewards=(None, height, None), ends=(is_high, None, None))
    chosen = np.eye(3, dtype=np.float32)[[1, 0, 1, 0]]
    before, after = {"x": np.array([1.0, 1, 1, 1])}, {"x": np.array([2.0, 3, 4, 1])}
    given = np.array([10.0, 20, 30, 40])
    np.testing.assert_array_equal(options.reward(chosen, before, after, given), [11, 20, 33, 40])
    np.testing.assert_array_equal(given, [10, 20, 30, 40])
    np.testing.assert_array_equal(options.ended(chosen, after), [False, True, False, False])
    np.testing.assert_array_equal(options.has_own_reward(chosen), [True, False, True, False])
    assert not OptionSpace(count=3).has_own_reward(chosen).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"rewards": (height,)},
            r"rewards needs a function \(or None\) for each of 2 options, got 1",
        ),
        ({"ends": (None, height)}, r"ends\[1\] must be a function of 1 argument, got height"),
        ({"rewards": (is_high, None)}, r"rewards\[0\] must be a function of 3 arguments, got is_"),
        ({"rewards": (3, None)}, "rewards must be tuple"),
    ],
)
def test_functions_of_options_are_checked(change, message):
    with pytest.raises(ParameterError, match=message):
        OptionSpace(count=2, **change)


def test_a_reward_of_another_shape_is_an_error_that_names_the_function():
    options = OptionSpace(count=1, rewards=(one_too_many,))
    seen = {"x": np.zeros(2)}
    with pytest.raises(
        RunError, match=r"rewards\[0\] \(one_too_many\) returned an array of shape \(3"
    ):
        options.reward(np.ones((2, 1), np.float32), seen, seen, np.zeros(2))
