"""Numbers worked out by hand, one block per filter; shared promises: test_filter_contract."""

import numpy as np
from gymnasium import spaces

import coach_rl as rl


class Filtered:
    def __init__(self, *parameters, num_rows=4):
        self.chain = rl.InputFilter(reward=parameters).build(spaces.Dict({}))
        self.memory = self.chain.new_rows(num_rows)

    def __call__(self, rewards, *, rows=None, ends=None, learn=True):
        count = len(rewards)
        return self.chain.reward(
            self.memory,
            np.arange(count) if rows is None else np.array(rows),
            np.asarray(rewards, dtype=np.float64),
            ends=np.zeros(count, bool) if ends is None else np.array(ends),
            learn=learn,
        )


def bounds(chain):
    return float(chain.reward_space.low), float(chain.reward_space.high)


def test_clipping_takes_0_for_a_bound():
    low = Filtered(rl.RewardClippingFilter(low=0))
    np.testing.assert_array_equal(low([-2.0, 0.5, 3.0]), [0.0, 0.5, 3.0])
    assert bounds(low.chain) == (0.0, np.inf)
    high = Filtered(rl.RewardClippingFilter(high=0.0))
    np.testing.assert_array_equal(high([-2.0, 0.5, 3.0]), [-2.0, 0.0, 0.0])
    assert bounds(high.chain) == (-np.inf, 0.0)


def test_rescaling_and_the_order_of_filters():
    scaled_first = Filtered(
        rl.RewardRescaleFilter(factor=10.0), rl.RewardClippingFilter(low=-1, high=1)
    )
    clipped_first = Filtered(
        rl.RewardClippingFilter(low=-1, high=1), rl.RewardRescaleFilter(factor=-10.0)
    )
    np.testing.assert_array_equal(scaled_first([0.05, 3.0]), [0.5, 1.0])
    np.testing.assert_array_equal(clipped_first([0.05, 3.0]), [-0.5, -10.0])
    assert bounds(scaled_first.chain) == (-1.0, 1.0)
    assert bounds(clipped_first.chain) == (-10.0, 10.0)


def test_normalization_by_hand():
    normalize = Filtered(rl.RewardNormalizationFilter(clip=1.5))
    # 0, 0, 0, 4: mean 1, variance 3
    np.testing.assert_allclose(normalize([0.0, 0.0, 0.0, 4.0]), [-(3**-0.5)] * 3 + [1.5], rtol=1e-6)
    assert bounds(normalize.chain) == (-1.5, 1.5)


def test_return_scaling_by_hand():
    scale = Filtered(rl.RewardReturnScalingFilter(discount=0.5, clip=None))
    # returns 1 and 3: deviation 1
    np.testing.assert_allclose(scale([1.0, 3.0], rows=[0, 2]), [1.0, 3.0], rtol=1e-6)
    # row 0: .5 * 1 + 4 = 4.5, row 2: .5 * 3 - 1 = .5; of 1, 3, 4.5, .5 the variance is 2.5625
    deviation = np.sqrt(2.5625)
    np.testing.assert_allclose(
        scale([4.0, -1.0], rows=[0, 2], ends=[True, False]),
        np.array([4.0, -1.0]) / deviation,
        rtol=1e-6,
    )
    # row 0 begins anew with 2, row 2 goes on with .25 + 2; without learning the deviation stays
    np.testing.assert_allclose(
        scale([2.0, 2.0], rows=[0, 2], learn=False), np.array([2.0, 2.0]) / deviation, rtol=1e-6
    )
    np.testing.assert_array_equal(scale.memory["reward/0/discounted_return"], [2.0, 0.0, 2.25, 0.0])


def test_return_scaling_agrees_with_a_slow_version():
    rng = np.random.default_rng(0)
    discount, running, seen = 0.9, np.zeros(3), []
    scale = Filtered(rl.RewardReturnScalingFilter(discount=discount), num_rows=3)
    for _ in range(60):
        rewards, ends = rng.normal(size=3) + 1, rng.random(3) < 0.2
        output = scale(rewards, ends=ends)
        running = running * discount + rewards
        seen.extend(running)
        running[ends] = 0.0
        expected = np.clip(rewards / np.sqrt(np.var(seen) + 1e-8), -10, 10)
        np.testing.assert_allclose(output, expected, rtol=1e-9)
