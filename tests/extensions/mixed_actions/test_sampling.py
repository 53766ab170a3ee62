import numpy as np
import pytest
import torch

from coach_rl.extensions.mixed_actions.distribution import Mixed
from coach_rl.extensions.mixed_actions.sampling import MixedSampler

SIZES = (3, 2)
RNG = np.random.default_rng(5)


def sampled(groups, rows, *, scale=1.0):
    sampler = MixedSampler(SIZES, groups)
    count = 5 + 2 * sum(size for size, _ in groups)
    parameters = (scale * RNG.standard_normal((rows, count))).astype(np.float32)
    return sampler, parameters, RNG.random((rows, sampler.noise_size), np.float32)


@pytest.mark.parametrize(
    "groups", [((4, None),), ((2, None), (1, (0, 2)), (2, (1, 0))), ((1, (1, 1)),)]
)
def test_log_probabilities_are_those_the_losses_compute(groups):
    sampler, parameters, noise = sampled(groups, 300)
    before = parameters.copy(), noise.copy()
    for action, log_prob in (sampler.draw(parameters, noise), sampler.greedy(parameters)):
        assert action.dtype == log_prob.dtype == np.float32
        expected = Mixed(SIZES, groups).log_prob(*map(torch.from_numpy, (parameters, action)))
        np.testing.assert_allclose(log_prob, expected.numpy(), rtol=2e-5, atol=2e-5)
    np.testing.assert_array_equal(parameters, before[0])
    np.testing.assert_array_equal(noise, before[1])


def test_greedy_takes_largest_logits_and_means():
    sampler = MixedSampler(SIZES, ((2, None),))
    parameters = np.float32([[0, 3, 1, 2, -1, 0.5, -7, 9, 9]])
    np.testing.assert_array_equal(sampler.greedy(parameters)[0], [[1, 0, 0.5, -7]])


def test_draws_have_the_moments_of_the_parameters():
    sampler = MixedSampler(SIZES, ((3, None),))
    chances, mean, std = [0.2, 0.5, 0.3, 0.9, 0.1], [1.0, -2.0, 0.0], [0.5, 2.0, 1.0]
    row = np.float32([*np.log(chances), *mean, *np.log(std)])
    count = 100_000
    noise = np.random.default_rng(0).random((count, sampler.noise_size), np.float32)
    action, _ = sampler.draw(np.tile(row, (count, 1)), noise)
    shares = [(action[:, 0] == value).mean() for value in range(3)]
    # five standard errors: of a share 0.008, of a mean and a deviation about 0.016 std
    np.testing.assert_allclose(shares, chances[:3], atol=0.008)
    standardised = (action[:, 2:] - mean) / std
    np.testing.assert_allclose(standardised.mean(axis=0), 0, atol=0.016)
    np.testing.assert_allclose(np.cov(standardised.T), np.eye(3), atol=0.025)
    np.testing.assert_allclose((standardised**4).mean(axis=0), 3, atol=0.16)
    correlation = np.corrcoef(action.T)[:2]
    np.testing.assert_allclose(correlation - np.eye(2, 5), 0, atol=0.016)


def test_extreme_noise_gives_finite_actions():
    sampler = MixedSampler(SIZES, ((2, None),))
    for value in (0.0, np.float32(1 - 2**-24)):
        noise = np.full((1, sampler.noise_size), value, np.float32)
        action, log_prob = sampler.draw(np.zeros((1, 9), np.float32), noise)
        assert np.isfinite(action).all()
        assert np.isfinite(log_prob).all()
        assert (action[0, :2] < SIZES).all()
