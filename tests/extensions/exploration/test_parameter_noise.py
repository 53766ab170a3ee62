"""Perturbed parameters for every row, and scales that find the distance asked for."""

import math

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.configuration.parameters_json import decode, encode
from coach_rl.extensions.exploration import ParameterNoise

UNEVEN = spaces.Box(np.float32([-1, 0]), np.float32([3, 1]))  # half ranges 2 and 0.5
PERTURBABLE = np.arange(50) % 10 != 0
FLAT = np.linspace(-1, 1, 50, dtype=np.float32)


def exploration(**fields):
    return ParameterNoise(**fields).build(UNEVEN, perturbable=PERTURBABLE)


def rows(*numbers):
    return np.array(numbers, np.int64)


def starts(*where):
    return np.array(where, np.bool_)


def test_parameters_are_perturbed_by_the_scale():
    noise = ParameterNoise(initial_scale=0.3).build(UNEVEN, perturbable=np.ones(5000, np.bool_))
    state = noise.new_rows(3, seed=1)
    flat = np.linspace(-1, 1, 5000, dtype=np.float32)
    own = noise.perturbed(state, rows(2, 0), flat, starts=starts(1, 1))
    assert own.shape == (2, 5000)
    assert own.dtype == np.float32
    # five standard errors: 0.3 / sqrt(2 * 5000) * 5 = 0.015, 0.3 / sqrt(5000) * 5 = 0.021
    np.testing.assert_allclose((own - flat).std(axis=1), 0.3, atol=0.015)
    np.testing.assert_allclose((own - flat).mean(axis=1), 0, atol=0.021)
    assert abs(np.corrcoef(own - flat)[0, 1]) < 5 / math.sqrt(5000)


def test_only_what_may_be_perturbed_is():
    noise = exploration()
    own = noise.perturbed(noise.new_rows(1, seed=1), rows(0), FLAT, starts=starts(1))
    np.testing.assert_array_equal(own[0] != FLAT, PERTURBABLE)


def test_a_perturbation_lasts_an_episode_and_follows_learning():
    noise = exploration()
    state = noise.new_rows(2, seed=1)
    first = noise.perturbed(state, rows(0, 1), FLAT, starts=starts(1, 1)) - FLAT
    learned = FLAT + 1
    second = noise.perturbed(state, rows(0, 1), learned, starts=starts(0, 1)) - learned
    np.testing.assert_allclose(second[0], first[0], atol=1e-6)
    assert (second[1] != first[1])[PERTURBABLE].all()


def test_a_row_that_begins_in_the_middle_of_an_episode_is_perturbed():
    noise = exploration()
    own = noise.perturbed(noise.new_rows(1, seed=1), rows(0), FLAT, starts=starts(0))
    assert (own[0] != FLAT).any()


def test_scales_adapt_by_hand():
    noise = exploration(initial_scale=1.0, target_distance=0.2, adaptation=2.0, adapt_every=2)
    state = noise.new_rows(3, seed=0)
    greedy = np.zeros((2, 2), np.float32)
    # Row 0 changes by (0.4, 0.1): 0.2 of both half ranges, which is no more than the target.
    # Row 2 by (0.8, 0) and then (0, 0): sqrt((0.16 / 2 + 0) / 2) = 0.2, and so is this;
    # by (1.2, 0) and (0, 0): sqrt((0.36 / 2) / 2) = 0.3 is more.
    change = np.float32([[0.4, 0.1], [0.8, 0]])
    noise.note_actions(state, rows(0, 2), perturbed=change * np.float32(0.999), greedy=greedy)
    assert state.scale.tolist() == [1, 1, 1]
    noise.note_actions(
        state,
        rows(0, 2),
        perturbed=change * np.float32([[0.999], [0]]),
        greedy=greedy,
    )
    assert state.scale.tolist() == [2, 1, 2]
    np.testing.assert_allclose(state.distance, [0.1998, 0, 0.1998], rtol=1e-5)
    for factor in (1.5, 0.0):
        noise.note_actions(state, rows(2), perturbed=factor * change[1:], greedy=greedy[1:])
    assert state.scale.tolist() == [2, 1, 1]
    np.testing.assert_allclose(state.distance, [0.1998, 0, 0.3], rtol=1e-5)
    assert noise.metrics(state) == {
        "exploration/parameter_scale": pytest.approx(4 / 3),
        "exploration/action_distance": pytest.approx(0.1666, rel=1e-3),
    }


def test_elements_that_cannot_move_do_not_count():
    space = spaces.Box(np.float32([-1, 5]), np.float32([3, 5]))
    params = ParameterNoise(adapt_every=1)
    noise = params.build(space, perturbable=PERTURBABLE)
    state = noise.new_rows(1, seed=0)
    noise.note_actions(state, rows(0), perturbed=np.float32([[1, 9]]), greedy=np.float32([[0, 5]]))
    assert state.distance[0] == 0.5


def test_json_rebuilds_it():
    params = ParameterNoise(target_distance=0.1)
    assert decode(encode(params)) == params
