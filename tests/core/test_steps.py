import pytest

from coach_rl.core.steps import (
    EnvironmentEpisodes,
    EnvironmentSteps,
    TrainingSteps,
)

KINDS = [EnvironmentSteps, EnvironmentEpisodes, TrainingSteps]


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
    assert EnvironmentSteps(5) != EnvironmentEpisodes(5)
    assert TrainingSteps(5) != EnvironmentSteps(5)
