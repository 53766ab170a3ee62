import numpy as np
import pytest

from coach_rl.core.errors import ParameterError
from coach_rl.telemetry.statistics import CHUNK, SignalWindows, by_signal


def noted(*batches):
    windows = SignalWindows()
    for values in batches:
        windows.note("gap", values)
    return windows


def test_statistics_are_those_of_all_values_of_the_window():
    drained = noted([1.0, 3.0], 5, np.array([[True], [False]])).drain("signals")
    assert drained == {
        "signals/gap/mean": pytest.approx(2.0),
        "signals/gap/std": pytest.approx(np.std([1, 3, 5, 1, 0])),
        "signals/gap/min": 0.0,
        "signals/gap/max": 5.0,
        "signals/gap/count": 5.0,
    }
    assert by_signal({**drained, "time/x": 1.0}, "signals")["gap"]["max"] == 5.0


def test_a_window_begins_anew_after_a_report():
    windows = noted([1.0])
    windows.drain("signals")
    assert windows.drain("signals") == {}
    windows.note("gap", 7)
    assert windows.drain("signals")["signals/gap/mean"] == 7.0


def test_many_values_have_the_statistics_of_numpy_and_are_not_kept():
    values = np.random.default_rng(0).normal(1e6, 1.0, 3 * CHUNK + 17)
    windows = noted(*np.array_split(values, 50))
    assert sum(map(len, windows.state_dict()["gap"]["pending"][None])) < CHUNK
    drained = windows.drain("signals")
    assert drained["signals/gap/mean"] == pytest.approx(values.mean(), rel=1e-12)
    assert drained["signals/gap/std"] == pytest.approx(values.std(), rel=1e-6)


@pytest.mark.parametrize("saved_after", [1, 20, 49])
def test_a_restored_window_continues_bit_for_bit(saved_after):
    batches = np.array_split(np.random.default_rng(1).normal(size=2 * CHUNK + 5), 50)
    whole, begun, restored = noted(*batches), noted(*batches[:saved_after]), SignalWindows()
    restored.load_state_dict(begun.state_dict())
    for values in batches[saved_after:]:
        restored.note("gap", values)
    assert restored.drain("signals") == whole.drain("signals")


def test_values_may_change_after_they_were_noted():
    values, windows = np.ones(3), SignalWindows()
    windows.note("gap", values)
    values[:] = 9
    assert windows.drain("signals")["signals/gap/max"] == 1.0


def test_a_value_that_is_not_a_number_shows_in_the_mean():
    drained = noted([1.0, np.nan]).drain("signals")
    assert np.isnan(drained["signals/gap/mean"])
    assert drained["signals/gap/count"] == 2


@pytest.mark.parametrize("values", ["fast", {"speed": 1.0}, None, [[1], [1, 2]]])
def test_what_is_no_number_is_refused(values):
    with pytest.raises(ParameterError, match="signal 'gap' takes numbers, got"):
        noted(values)
