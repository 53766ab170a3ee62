import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coach_rl.core.errors import NonFiniteError
from coach_rl.core.running_statistics import RunningStatistics


def test_statistics_without_rows_are_standard_normal():
    statistics = RunningStatistics((3,))
    np.testing.assert_array_equal(statistics.mean, np.zeros(3))
    np.testing.assert_array_equal(statistics.variance, np.ones(3))


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.integers(0, 7), min_size=1, max_size=8),
    st.floats(-1e6, 1e6),
    st.sampled_from([np.float64, np.float32, np.uint8]),
)
def test_update_batches_of_any_size_equal_one_pass(sizes, offset, dtype):
    rng = np.random.default_rng(len(sizes))
    data = (rng.normal(size=(sum(sizes), 3)) * 20 + (100 if dtype is np.uint8 else offset)).astype(
        dtype
    )
    statistics = RunningStatistics((3,))
    begin = 0
    for size in sizes:
        statistics.update(data[begin : begin + size])
        begin += size
    assert statistics.count == len(data)
    if len(data):
        exact = data.astype(np.float64)
        np.testing.assert_allclose(statistics.mean, exact.mean(0), rtol=1e-12, atol=1e-9)
        np.testing.assert_allclose(statistics.variance, exact.var(0), rtol=1e-6, atol=1e-9)


def test_variance_of_large_means_is_exact():
    statistics = RunningStatistics(())
    for _ in range(500):
        statistics.update(np.array([1e9 - 1.0, 1e9 + 1.0]))
    assert statistics.variance == pytest.approx(1.0, rel=1e-6)


def test_inverse_std_ignores_the_rounding_of_large_constants():
    statistics = RunningStatistics(())
    for _ in range(20):
        statistics.update(np.full(7, 1e12 + 0.1))  # their mean is off by one unit in the last place
    off = 1e12 + 0.1 - statistics.mean
    assert 0 < abs(off) * statistics.inverse_std(1e-8) < 1e-3
    spread = RunningStatistics((2,))
    spread.update(np.array([[1e9 - 1.0, 0.0], [1e9 + 1.0, 0.0]]))
    np.testing.assert_array_equal(
        spread.inverse_std(1e-8), 1 / np.sqrt(np.array([1.0, 0.0]) + 1e-8)
    )


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_update_number_that_is_not_finite_changes_nothing(bad):
    statistics = RunningStatistics((2,))
    statistics.update(np.array([[1.0, 2.0], [3.0, 5.0]]))
    before = statistics.state_dict()
    with pytest.raises(NonFiniteError):
        statistics.update(np.array([[0.0, 0.0], [0.0, 0.0], [0.0, bad]]))
    for name, value in statistics.state_dict().items():
        np.testing.assert_array_equal(value, before[name])
