"""Parameter classes say in one line what is wrong with what they are given."""

from dataclasses import FrozenInstanceError, dataclass, fields
from typing import Literal

import pytest

from coach_rl.core.clock import ConstantSchedule, Schedule
from coach_rl.core.errors import ParameterError, require
from coach_rl.core.parameter_classes import parameter_class, with_values
from coach_rl.core.ranges import Positive
from coach_rl.core.steps import EnvironmentSteps


@parameter_class
class Walk:
    """A walk."""

    name: str
    stride: Positive[float] = 0.5
    limit: EnvironmentSteps | None = None
    legs: tuple[Positive[int], ...] = (2,)
    gait: Literal["walk", "run"] = "walk"
    pace: Schedule | None = None

    def __post_init__(self) -> None:
        require(len(self.legs) > 1 or self.gait == "walk", "only two legs can run")


@parameter_class
class Hike(Walk):
    """A longer one."""

    height: int = 0


@dataclass(frozen=True, kw_only=True)
class Stroll(Walk):
    """A user's own, without the decorator; its stride is declared anew."""

    stride: float = 0.3
    stops: Positive[int] = 1


def test_parameter_class_is_a_frozen_dataclass():
    walk = Walk(name="w")
    with pytest.raises(FrozenInstanceError):
        walk.name = "other"
    assert [each.name for each in fields(Hike)][-1] == "height"
    assert Walk(name="w") == walk != Hike(name="w")


def test_with_values_copy_has_them_unchecked_and_the_original_keeps_its_own():
    constant = ConstantSchedule(value=2.0)
    changed = with_values(constant, value="unchecked")
    assert (changed.value, constant.value) == ("unchecked", 2.0)
    assert type(changed) is ConstantSchedule


@parameter_class
class Outer:
    schedule: Schedule = ConstantSchedule(value=1.0)
    number: float | None = None
    rate: Positive[float] = 1.0


def test_values_of_classes_that_a_field_knows_are_still_fitted_where_their_value_counts():
    schedule = ConstantSchedule(value=3.0)
    assert Outer(schedule=schedule).schedule is Outer(schedule=schedule).schedule is schedule
    assert type(Outer(number=2).number) is float
    for wrong in ({"schedule": 1.0}, {"rate": -1.0}, {"number": "2"}, {"number": True}):
        with pytest.raises(ParameterError):
            Outer(**wrong)
