import numpy as np

from coach_rl.core.options import OptionSpace


def test_option_space_target_is_one_hot():
    options = OptionSpace(count=3)
    told = options.target(np.array([2, 0]), {})
    np.testing.assert_array_equal(told, [[0, 0, 1], [1, 0, 0]])
    assert options.shown["option"].contains(told[0])
    assert options.space.n == 3


def height(before, after, given):
    return after["x"] - before["x"] + given


def one_too_many(before, after, given):
    return np.zeros(len(given) + 1)


def is_high(after):
    return after["x"] > 2


def test_option_space_own_rewards_and_ends_are_used():
    options = OptionSpace(count=3, rewards=(None, height, None), ends=(is_high, None, None))
    chosen = np.eye(3, dtype=np.float32)[[1, 0, 1, 0]]
    before, after = {"x": np.array([1.0, 1, 1, 1])}, {"x": np.array([2.0, 3, 4, 1])}
    given = np.array([10.0, 20, 30, 40])
    np.testing.assert_array_equal(options.reward(chosen, before, after, given), [11, 20, 33, 40])
    np.testing.assert_array_equal(given, [10, 20, 30, 40])
    np.testing.assert_array_equal(options.ended(chosen, after), [False, True, False, False])
    np.testing.assert_array_equal(options.has_own_reward(chosen), [True, False, True, False])
    assert not OptionSpace(count=3).has_own_reward(chosen).any()
