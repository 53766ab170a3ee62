import numpy as np
import pytest

from coach_rl.core.errors import ParameterError
from coach_rl.telemetry.statistics import bootstrap_interval, interquartile_mean


def mean(samples):
    return samples.mean(axis=-1)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ([7.0], 7.0),
        ([1.0, 3.0], 2.0),  # each covers half of [0.5, 1.5]
        ([0.0, 6.0, 30.0], 9.0),  # (0 / 4 + 6 + 30 / 4) / 1.5
        ([1000.0, 2.0, 4.0, -1000.0], 3.0),  # the middle two
        ([0.0, 4.0, 8.0, 12.0, 100.0], 8.0),  # (0.75 * 4 + 8 + 0.75 * 12) / 2.5
        ([0.0, 2.0, 4.0, 6.0, 10.0, 99.0], 16 / 3),  # (0.5 * 2 + 4 + 6 + 0.5 * 10) / 3
        ([-50.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 90.0], 2.5),  # (1 + 2 + 3 + 4) / 4
    ],
)
def test_the_middle_half_by_hand(scores, expected):
    assert float(interquartile_mean(scores)) == pytest.approx(expected, rel=1e-12)
    assert interquartile_mean(scores[::-1]) == interquartile_mean(scores)


def test_rows_like_one_by_one():
    scores = np.random.default_rng(0).normal(size=(5, 7))
    one_by_one = [float(interquartile_mean(row)) for row in scores]
    assert interquartile_mean(scores) == pytest.approx(one_by_one, rel=1e-12)


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_not_trimmed_away(strange):
    assert np.isnan(interquartile_mean(np.array([1.0, 2.0, 3.0, strange])))


def test_one_episode_is_its_own_interval():
    interval = bootstrap_interval([3.5], interquartile_mean, rng=np.random.default_rng(0))
    assert interval == (3.5, 3.5)


def test_two_episodes_by_hand():
    # The mean of two draws of {0, 1} is 0, 0.5, 1 with chances 1/4, 1/2, 1/4: the middle 95 % is
    # all of it, the middle 40 % is 0.5 alone.
    def interval(confidence):
        rng = np.random.default_rng(1)
        return bootstrap_interval(np.array([0.0, 1.0]), mean, confidence=confidence, rng=rng)

    assert interval(0.95) == (0.0, 1.0)
    assert interval(0.4) == (0.5, 0.5)


def test_the_interval_of_a_mean_is_near_the_normal_one():
    scores = np.random.default_rng(2).normal(10.0, 2.0, size=400)
    low, high = bootstrap_interval(scores, mean, rng=np.random.default_rng(3))
    half = 1.96 * scores.std() / 20  # 0.196
    assert low == pytest.approx(scores.mean() - half, abs=0.02)
    assert high == pytest.approx(scores.mean() + half, abs=0.02)


def test_the_interval_comes_from_the_generator_alone():
    def interval(seed):
        rng = np.random.default_rng(seed)
        return bootstrap_interval(np.arange(20.0) ** 2, interquartile_mean, rng=rng)

    assert interval(4) == interval(4) != interval(5)


def test_bootstrap_interval_statistic_is_called_once_for_all_samples():
    calls = []

    def mean(scores):
        calls.append(scores.shape)
        return interquartile_mean(scores)

    bootstrap_interval(np.arange(20.0), mean, rng=np.random.default_rng(0))
    assert len(calls) == 1


@pytest.mark.parametrize(
    ("scores", "changed", "message"),
    [
        ([], {}, "no scores"),
        ([1.0], {"confidence": 1.0}, "confidence must be between 0 and 1, got 1.0"),
        ([1.0], {"resamples": 0}, "resamples must be 1 or more, got 0"),
    ],
)
def test_what_is_undefined_is_refused(scores, changed, message):
    with pytest.raises(ParameterError, match=message):
        bootstrap_interval(scores, interquartile_mean, rng=np.random.default_rng(0), **changed)


def test_the_mean_of_nothing_is_refused():
    with pytest.raises(ParameterError, match="of no scores"):
        interquartile_mean([])
