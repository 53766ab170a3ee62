import numpy as np
import pytest

from coach_rl.core.errors import ParameterError
from coach_rl.graph_managers.statistics import (
    CHUNK,
    SignalWindows,
    bootstrap_interval,
    interquartile_mean,
    require_image,
)
from coach_rl.telemetry.summary import by_signal


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
def test_interquartile_mean_by_hand(scores, expected):
    assert float(interquartile_mean(scores)) == pytest.approx(expected, rel=1e-12)
    assert interquartile_mean(scores[::-1]) == interquartile_mean(scores)


def test_interquartile_mean_rows_equal_single():
    scores = np.random.default_rng(0).normal(size=(5, 7))
    one_by_one = [float(interquartile_mean(row)) for row in scores]
    assert interquartile_mean(scores) == pytest.approx(one_by_one, rel=1e-12)


@pytest.mark.parametrize("strange", [np.nan, np.inf, -np.inf])
def test_interquartile_mean_non_finite_is_nan(strange):
    assert np.isnan(interquartile_mean(np.array([1.0, 2.0, 3.0, strange])))


def test_bootstrap_interval_one_score():
    interval = bootstrap_interval([3.5], interquartile_mean, rng=np.random.default_rng(0))
    assert interval == (3.5, 3.5)


def test_bootstrap_interval_two_scores_by_hand():
    # The mean of two draws of {0, 1} is 0, 0.5, 1 with chances 1/4, 1/2, 1/4: the middle 95 % is
    # all of it, the middle 40 % is 0.5 alone.
    def interval(confidence):
        rng = np.random.default_rng(1)
        return bootstrap_interval(np.array([0.0, 1.0]), mean, confidence=confidence, rng=rng)

    assert interval(0.95) == (0.0, 1.0)
    assert interval(0.4) == (0.5, 0.5)


def test_bootstrap_interval_mean_is_near_normal():
    scores = np.random.default_rng(2).normal(10.0, 2.0, size=400)
    low, high = bootstrap_interval(scores, mean, rng=np.random.default_rng(3))
    half = 1.96 * scores.std() / 20  # 0.196
    assert low == pytest.approx(scores.mean() - half, abs=0.02)
    assert high == pytest.approx(scores.mean() + half, abs=0.02)


def test_bootstrap_interval_depends_on_generator_alone():
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


def noted(*batches):
    windows = SignalWindows()
    for values in batches:
        windows.note("gap", values)
    return windows


def test_signal_windows_statistics_by_hand():
    drained = noted([1.0, 3.0], 5, np.array([[True], [False]])).drain("signals")
    assert drained == {
        "signals/gap/mean": pytest.approx(2.0),
        "signals/gap/std": pytest.approx(np.std([1, 3, 5, 1, 0])),
        "signals/gap/min": 0.0,
        "signals/gap/max": 5.0,
        "signals/gap/count": 5.0,
    }
    assert by_signal({**drained, "time/x": 1.0}, "signals")["gap"]["max"] == 5.0


def test_signal_windows_drain_resets():
    windows = noted([1.0])
    windows.drain("signals")
    assert windows.drain("signals") == {}
    windows.note("gap", 7)
    assert windows.drain("signals")["signals/gap/mean"] == 7.0


def test_signal_windows_many_values_equal_numpy():
    values = np.random.default_rng(0).normal(1e6, 1.0, 3 * CHUNK + 17)
    windows = noted(*np.array_split(values, 50))
    assert sum(map(len, windows.state_dict()["gap"]["pending"][None])) < CHUNK
    drained = windows.drain("signals")
    assert drained["signals/gap/mean"] == pytest.approx(values.mean(), rel=1e-12)
    assert drained["signals/gap/std"] == pytest.approx(values.std(), rel=1e-6)


@pytest.mark.parametrize("saved_after", [1, 20, 49])
def test_signal_windows_restored_continues_bit_for_bit(saved_after):
    batches = np.array_split(np.random.default_rng(1).normal(size=2 * CHUNK + 5), 50)
    whole, begun, restored = noted(*batches), noted(*batches[:saved_after]), SignalWindows()
    restored.load_state_dict(begun.state_dict())
    for values in batches[saved_after:]:
        restored.note("gap", values)
    assert restored.drain("signals") == whole.drain("signals")


def test_signal_windows_noted_values_are_copied():
    values, windows = np.ones(3), SignalWindows()
    windows.note("gap", values)
    values[:] = 9
    assert windows.drain("signals")["signals/gap/max"] == 1.0


def test_signal_windows_nan_shows_in_mean():
    drained = noted([1.0, np.nan]).drain("signals")
    assert np.isnan(drained["signals/gap/mean"])
    assert drained["signals/gap/count"] == 2


@pytest.mark.parametrize("shape", [(4097, 2), (2, 4097, 3), (30_000, 30_000)])
def test_require_image_larger_than_can_be_written_is_refused(shape: tuple[int, ...]) -> None:
    image = np.broadcast_to(np.uint8(0), shape)
    with pytest.raises(ParameterError, match=r"the image 'map' .* 4,096 pixels a side, got \["):
        require_image("map", image)
    assert require_image("map", np.zeros((4096, 1), np.uint8)).size == 4096
