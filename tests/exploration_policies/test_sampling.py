import math

import numpy as np
import pytest

from coach_rl.exploration_policies.samplers import GaussianSampler
from coach_rl.exploration_policies.sampling import CategoricalSampler

RNG = np.random.default_rng(3)
TOP = np.float32(1 - 2**-24)  # the largest float32 below 1


def normal(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


def uniform(*shape):
    return RNG.random(shape, np.float32)


def test_a_gaussian_draw_by_hand():
    parameters = np.array([[1.0, -2.0, math.log(2.0), math.log(0.5)]], np.float32)
    actions, log_prob = GaussianSampler(2).draw(parameters, np.array([[0.5, -1.0]], np.float32))
    # 1 + 2 * 0.5, -2 - 0.5 * 1; the log deviations cancel: -(0.25 + 1) / 2 - log(2 pi)
    np.testing.assert_allclose(actions, [[2.0, -2.5]], rtol=1e-6)
    np.testing.assert_allclose(log_prob, [-0.625 - math.log(2 * math.pi)], rtol=1e-6)


def test_choices_are_drawn_as_often_as_their_probabilities_say():
    first, second = np.array([0.1, 0.9]), np.array([0.25, 0.05, 0.7])
    parameters = np.log(np.concatenate([first, second]).astype(np.float32))[None].repeat(40_000, 0)
    noise = np.random.default_rng(0).random((40_000, 2), np.float32)
    actions, _ = CategoricalSampler((2, 3), single=False).draw(parameters, noise)
    counts = np.zeros((2, 3))
    np.add.at(counts, (actions[:, 0], actions[:, 1]), 1)
    # independent: the table is the product; five standard errors of a share are below 0.0125
    np.testing.assert_allclose(counts / 40_000, np.outer(first, second), atol=0.0125)


@pytest.mark.parametrize("size", [2, 3, 7, 100, 1000])
def test_noise_next_to_one_still_gives_an_action_that_exists(size):
    logits = normal(2000, size)
    actions, log_prob = CategoricalSampler((size,), single=True).draw(
        logits, np.full((2000, 1), TOP)
    )
    assert actions.max() == size - 1
    assert np.isfinite(log_prob).all()
    # what the clamp is for: there are rows whose rounded probabilities do not sum to more
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    if size >= 100:
        assert (probabilities.cumsum(axis=1)[:, -1] < TOP).any()


def test_an_impossible_first_action_is_not_drawn_at_noise_zero():
    logits = np.array([[-1000.0, 0.0, 0.0]], np.float32)
    sampler = CategoricalSampler((3,), single=True)
    actions, log_prob = sampler.draw(logits, np.zeros((1, 1), np.float32))
    np.testing.assert_array_equal(actions, [1])
    np.testing.assert_allclose(log_prob, [math.log(0.5)], rtol=1e-6)


def test_large_logits_do_not_overflow():
    logits = np.array([[1e4, 1e4 - 1.0], [-1e4, -1e4 - 1.0]], np.float32)
    _, log_prob = CategoricalSampler((2,), single=True).draw(logits, np.zeros((2, 1), np.float32))
    np.testing.assert_allclose(log_prob, [-math.log1p(math.exp(-1))] * 2, rtol=1e-4)


def test_the_greedy_action_is_the_most_likely_one():
    parameters = np.array([[1.0, -2.0, 5.0, 6.0]], np.float32)
    np.testing.assert_array_equal(GaussianSampler(2).greedy(parameters)[0], [[1.0, -2.0]])
    logits = np.array([[0.0, 2.0, 1.0, -1.0, -3.0], [3.0, 2.0, 0.0, -1.0, 5.0]], np.float32)
    single = CategoricalSampler((5,), single=True)
    np.testing.assert_array_equal(single.greedy(logits)[0], [1, 4])
    several = CategoricalSampler((2, 3), single=False)
    np.testing.assert_array_equal(several.greedy(logits)[0], [[1, 0], [0, 2]])


def test_actions_have_an_axis_only_where_there_are_several():
    logits, noise = normal(4, 5), uniform(4, 1)
    single, _ = CategoricalSampler((5,), single=True).draw(logits, noise)
    several, _ = CategoricalSampler((5,), single=False).draw(logits, noise)
    assert single.shape == (4,)
    assert several.shape == (4, 1)
    assert single.dtype == several.dtype == np.int64
    np.testing.assert_array_equal(single, several[:, 0])


@pytest.mark.parametrize(
    ("sampler", "parameters", "noise"),
    [
        (GaussianSampler(3), normal(200, 6), normal(200, 3)),
        (CategoricalSampler((5,), single=True), normal(200, 5), uniform(200, 1)),
        (CategoricalSampler((2, 4, 3), single=False), normal(200, 9), uniform(200, 3)),
    ],
)
def test_drawing_leaves_its_arguments_alone(sampler, parameters, noise):
    before = parameters.copy(), noise.copy()
    sampler.draw(parameters, noise)
    sampler.greedy(parameters)
    np.testing.assert_array_equal(parameters, before[0])
    np.testing.assert_array_equal(noise, before[1])


def test_each_sampler_says_what_noise_it_takes():
    gaussian, choices = GaussianSampler(3), CategoricalSampler((2, 4), single=False)
    assert (gaussian.noise_size, gaussian.noise_kind) == (3, "normal")
    assert (choices.noise_size, choices.noise_kind) == (2, "uniform")
