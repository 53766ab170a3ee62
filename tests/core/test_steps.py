import numpy as np
import pytest

import coach_rl as rl

KINDS = [rl.EnvironmentSteps, rl.EnvironmentEpisodes, rl.TrainingSteps]


@pytest.mark.parametrize("kind", KINDS)
def test_steps_of_one_kind_add_subtract_and_compare(kind):
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


def test_steps_of_different_kinds_are_never_equal():
    assert rl.EnvironmentSteps(5) != rl.EnvironmentEpisodes(5)
    assert rl.TrainingSteps(5) != rl.EnvironmentSteps(5)


@pytest.mark.parametrize("number", [np.int64(1000), np.uint8(100), 1e3, np.float32(1e3)])
@pytest.mark.parametrize("kind", [*KINDS, rl.Hours])
def test_steps_whole_number_of_any_type_is_taken_as_plain_number(kind, number):
    made = kind(number)
    assert made == kind(int(number))
    assert type(made.count) in (int, float)
    assert type(made.count) is int or kind is rl.Hours
