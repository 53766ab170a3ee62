import numpy as np
import pytest

from coach_rl.core.errors import ParameterError
from coach_rl.core.steps import (
    EnvironmentEpisodes,
    EnvironmentSteps,
    StepUnit,
    TrainingSteps,
    require_unit,
)

KINDS = [EnvironmentSteps, EnvironmentEpisodes, TrainingSteps]


@pytest.mark.parametrize("kind", KINDS)
def test_amounts_of_one_kind_add_subtract_and_compare(kind):
    assert kind(500) + kind(1) == kind(501)
    assert kind(500) - kind(1) == kind(499)
    assert type(kind(1) + kind(1)) is kind
    assert kind(1) < kind(2)
    assert kind(2) <= kind(2)
    assert kind(3) > kind(2)
    assert kind(2) >= kind(2)
    assert not kind(2) < kind(2)
    assert not kind(1) >= kind(2)
    assert not kind(2) <= kind(1)
    assert not kind(2) > kind(2)
    assert len({kind(3), kind(3), kind(4)}) == 2


def test_amounts_of_different_kinds_are_never_equal():
    assert EnvironmentSteps(5) != EnvironmentEpisodes(5)
    assert TrainingSteps(5) != EnvironmentSteps(5)


@pytest.mark.parametrize(
    "operation",
    [
        lambda a, b: a + b,
        lambda a, b: a - b,
        lambda a, b: a < b,
        lambda a, b: a <= b,
        lambda a, b: a > b,
        lambda a, b: a >= b,
    ],
)
@pytest.mark.parametrize("other", [TrainingSteps(1), 1])
def test_amounts_of_different_kinds_do_not_mix(operation, other):
    with pytest.raises(TypeError, match=r"EnvironmentSteps and .* are different kinds"):
        operation(EnvironmentSteps(2), other)


@pytest.mark.parametrize("count", [-1, 1.0, True, "3", None, np.int64(3)])
def test_a_count_is_a_whole_number_of_zero_or_more(count):
    with pytest.raises(ParameterError, match=r"EnvironmentSteps\.count must be a whole number"):
        EnvironmentSteps(count)


def test_nothing_goes_below_zero():
    with pytest.raises(ParameterError, match="got -1"):
        TrainingSteps(1) - TrainingSteps(2)


def test_a_plain_number_where_a_unit_is_needed_is_answered_with_what_to_write():
    require_unit(TrainingSteps(5), StepUnit, "the length")
    with pytest.raises(ParameterError, match=r"got 5; write EnvironmentSteps\(3000\)"):
        require_unit(5, StepUnit, "the length")
    with pytest.raises(ParameterError, match="episodes must be EnvironmentEpisodes, got Env"):
        require_unit(EnvironmentSteps(5), EnvironmentEpisodes, "episodes")
