import math

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.spaces import check_actions
from coach_rl.exploration_policies.box_noise import SquashedGaussianPolicy

BOX = spaces.Box(np.float32([-1, -2]), np.float32([3, 0.5]))
CLOCK = Clock(phase=Phase.TRAIN)


def explored(policy, state, values, rows=None):
    rows = np.arange(len(values)) if rows is None else rows
    return policy.explore(state, rows, values, starts=np.zeros(len(rows), bool), clock=CLOCK)


def outputs(mean, log_std, rows):
    return np.tile(np.float32([*mean, *log_std]), (rows, 1))


def test_greedy_is_the_squashed_mean_in_the_box():
    policy = SquashedGaussianPolicy(BOX)
    found = policy.greedy(np.float32([[0.0, 0.0, 9, 9], [0.5, -0.5, 0, 0], [1e3, -1e3, 0, 0]]))
    half = math.tanh(0.5)
    expected = [[1.0, -0.75], [1 + 2 * half, -0.75 - 1.25 * half], [3.0, -2.0]]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert found.dtype == np.float32


def test_samples_follow_the_distribution():
    policy = SquashedGaussianPolicy(BOX)
    count = 4000
    state = policy.new_rows(count, seed=0)
    actions = explored(policy, state, outputs((0.3, -0.6), (-1.0, 0.2), count))
    unsquashed = np.arctanh((actions.astype(np.float64) - [1.0, -0.75]) / [2.0, 1.25])
    np.testing.assert_allclose(unsquashed.mean(axis=0), [0.3, -0.6], atol=0.06)
    np.testing.assert_allclose(unsquashed.std(axis=0), np.exp([-1.0, 0.2]), rtol=0.04)
    assert abs(np.corrcoef(unsquashed.T)[0, 1]) < 0.05


def test_log_deviations_are_bounded():
    narrow = SquashedGaussianPolicy(BOX, log_std_bounds=(-3.0, -2.0))
    low, high = (
        explored(narrow, narrow.new_rows(3, 0), outputs((0, 0), (size, size), 3))
        for size in (-99.0, 99.0)
    )
    unsquashed = [np.arctanh((each - [1.0, -0.75]) / [2.0, 1.25]) for each in (low, high)]
    np.testing.assert_allclose(unsquashed[1], unsquashed[0] * math.e, rtol=1e-3)


@pytest.mark.parametrize("seed", range(20))
def test_actions_stay_in_any_box(seed):
    """Rounding must not carry an action beyond a bound, wherever the bounds lie."""
    rng = np.random.default_rng(seed)
    low = (rng.normal(size=5) * 10.0 ** rng.integers(-3, 4, 5)).astype(np.float32)
    high = (low + np.abs(rng.normal(size=5)) * 10.0 ** rng.integers(-3, 4, 5)).astype(np.float32)
    space = spaces.Box(low, np.maximum(high, np.nextafter(low, np.float32(np.inf))))
    policy = SquashedGaussianPolicy(space)
    values = np.float32([[1e3] * 10, [-1e3] * 5 + [0] * 5, [0] * 10, [9] * 10, [-9] * 5 + [2] * 5])
    check_actions(space, policy.greedy(values))
    check_actions(space, explored(policy, policy.new_rows(5, seed), values))
