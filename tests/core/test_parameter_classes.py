"""Parameter classes say in one line what is wrong with what they are given."""

from dataclasses import FrozenInstanceError, dataclass, fields, replace
from typing import Literal

import numpy as np
import pytest

from coach_rl.core.clock import ConstantSchedule, Schedule
from coach_rl.core.errors import ParameterError, UnknownNameError, require
from coach_rl.core.parameter_classes import parameter_class
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


@pytest.mark.parametrize(
    ("given", "field", "value"),
    [
        ({"limit": 500}, "limit", EnvironmentSteps(500)),
        ({"limit": 5e2}, "limit", EnvironmentSteps(500)),
        ({"stride": 1}, "stride", 1.0),
        ({"legs": [2, 4]}, "legs", (2, 4)),
        ({"legs": (np.int64(3),)}, "legs", (3,)),
        ({"stride": np.float32(0.5)}, "stride", 0.5),
        ({"pace": ConstantSchedule(value=1.0)}, "pace", ConstantSchedule(value=1.0)),
    ],
)
def test_values_that_lose_nothing_are_converted_to_the_declared_type(given, field, value):
    for cls in (Walk, Hike):
        taken = getattr(cls(name="w", **given), field)
        assert taken == value
        assert type(taken) is type(value)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stride": "1e-3"}, r"^Walk.stride of 'w' must be float > 0, got '1e-3'$"),
        ({"stride": True}, r"^Walk.stride of 'w' must be float > 0, got True$"),
        ({"limit": 0.5}, r"got 0.5; write a whole number, or EnvironmentSteps\(3000\)$"),
        ({"gait": "hop"}, r"^Walk.gait of 'w' must be 'walk' or 'run', got 'hop'$"),
        ({"pace": 0.5}, r"^Walk.pace of 'w' must be Schedule | None, got 0.5"),
        ({"pace": ConstantSchedule}, r"the class ConstantSchedule; write ConstantSchedule\(\.\.\."),
        ({"stride": -1}, r"^Walk.stride of 'w' must be float > 0, got -1$"),
        ({"legs": (2, 0)}, r"^Walk.legs of 'w' must be tuple\[int > 0, \.\.\.\], got \(2, 0\)$"),
        ({"gait": "run"}, r"^only two legs can run$"),
    ],
)
def test_a_value_of_another_type_is_refused_by_name(given, message):
    with pytest.raises(ParameterError, match=message):
        Walk(name="w", **given)
    with pytest.raises(ParameterError, match=message):
        replace(Walk(name="w"), **given)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"stride": 0}, "Stroll.stride of 'w' must be float > 0, got 0"),
        ({"legs": (0,)}, "Stroll.legs of 'w' must be tuple"),
        ({"stops": 0}, "Stroll.stops of 'w' must be int > 0, got 0"),
        ({"gait": "run"}, "only two legs can run"),
    ],
)
def test_a_plain_dataclass_inherits_ranges_and_rules(given, message):
    with pytest.raises(ParameterError, match=message):
        Stroll(name="w", **given)
    assert Stroll(name="w", limit=5).limit == EnvironmentSteps(5)


def test_an_unknown_keyword_gets_the_nearest_name():
    with pytest.raises(UnknownNameError, match=r"'strid' of Hike; did you mean 'stride'\?"):
        Hike(name="w", strid=0.4)


def test_a_missing_positional_or_wrong_name_is_refused():
    with pytest.raises(ParameterError, match=r"^Hike lacks name; write Hike\(name=\.\.\.\)$"):
        Hike(height=3)
    with pytest.raises(ParameterError, match=r"^Walk\.name must be str, got 3$"):
        Walk(name=3)
    with pytest.raises(ParameterError, match=r"Walk takes keyword arguments .*, got 'w'"):
        Walk("w")


def test_it_is_a_frozen_dataclass():
    walk = Walk(name="w")
    with pytest.raises(FrozenInstanceError):
        walk.name = "other"
    assert [each.name for each in fields(Hike)][-1] == "height"
    assert Walk(name="w") == walk != Hike(name="w")
