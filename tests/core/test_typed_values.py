"""Values that users type are fitted to declared types, or refused with the type named."""

from collections.abc import Mapping
from typing import Any, Literal

import pytest

from coach_rl.core.clock import LinearSchedule, Phase
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.ranges import Positive
from coach_rl.core.steps import (
    EnvironmentEpisodes,
    EnvironmentSteps,
    Hours,
    RunLength,
    StepUnit,
    TrainingSteps,
)
from coach_rl.core.typed_values import declared_types, describe_type, fit


@pytest.mark.parametrize(
    ("value", "annotation", "current", "expected"),
    [
        (1, float, 0.5, 1.0),
        (1e6, int, 5, 1_000_000),
        (True, bool, False, True),
        ("relu", str, "tanh", "relu"),
        (None, float | None, 0.5, None),
        (2, float | None, None, 2.0),
        (2, int | float, None, 2),
        (2.5, int | float, None, 2.5),
        (5, EnvironmentSteps, EnvironmentSteps(1), EnvironmentSteps(5)),
        (1e6, EnvironmentSteps | None, None, EnvironmentSteps(1_000_000)),
        (None, EnvironmentSteps | None, EnvironmentSteps(1), None),
        (5, StepUnit, TrainingSteps(1), TrainingSteps(5)),
        (5, EnvironmentSteps | EnvironmentEpisodes, EnvironmentEpisodes(1), EnvironmentEpisodes(5)),
        (5, EnvironmentSteps | EnvironmentEpisodes | None, None, EnvironmentSteps(5)),
        (5, RunLength, Hours(1), Hours(5)),
        (1.5, RunLength, Hours(1), Hours(1.5)),
        (2, Hours | None, None, Hours(2)),
        (TrainingSteps(7), RunLength, EnvironmentSteps(1), TrainingSteps(7)),
        ([64, 32], tuple[int, ...], (1,), (64, 32)),
        ((), tuple[int, ...], (1,), ()),
        ((1, 2), tuple[float, ...], (), (1.0, 2.0)),
        ((1, [2, 3]), tuple[int, tuple[float, ...]], None, (1, (2.0, 3.0))),
        (((0, 1),), tuple[tuple[int, float], ...], None, ((0, 1.0),)),
        ((1, 2), tuple[float, ...] | None, None, (1.0, 2.0)),
        ("dense", Literal["sparse", "dense"], "sparse", "dense"),
        ("TEST", Phase, Phase.TRAIN, Phase.TEST),
        ("test", Phase | None, None, Phase.TEST),
        ({"a": 1}, Mapping[str, float], {}, {"a": 1.0}),
        ({"a": [1]}, dict[str, Any], {}, {"a": [1]}),
        ([1], Any, None, [1]),
        ([1, 2], tuple, None, (1, 2)),
        (
            LinearSchedule(start=1, end=0),
            LinearSchedule | float,
            1.0,
            LinearSchedule(start=1, end=0),
        ),
    ],
)
def test_fits(value: object, annotation: Any, current: object, expected: object) -> None:
    fitted = fit(value, annotation, current, "name")
    assert fitted == expected
    assert repr(fitted) == repr(expected)


@pytest.mark.parametrize(
    ("value", "annotation", "current", "message"),
    [
        ("fast", float, 0.5, "rate must be float, got 'fast'"),
        (True, float, 0.5, "rate must be float, got True"),
        (True, int, 5, "rate must be int, got True"),
        (1.5, int, 5, "rate must be int, got 1.5"),
        (float("inf"), int, 5, "rate must be int, got inf"),
        (None, float, 0.5, "rate must be float, got None"),
        ("true", bool, False, "rate must be bool, got 'true'; write True"),
        ("none", int | None, 1, "rate must be int | None, got 'none'; write None"),
        (-1, EnvironmentSteps, EnvironmentSteps(1), "rate must be EnvironmentSteps, got -1"),
        (1.5, EnvironmentSteps, EnvironmentSteps(1), "rate must be EnvironmentSteps, got 1.5"),
        (1.5, RunLength, EnvironmentSteps(1), "write a whole number, or EnvironmentSteps(3000)"),
        (-1.5, Hours, Hours(1), "rate must be Hours, got -1.5; write a number of hours"),
        ((1, "a"), tuple[int, ...], (), "rate must be tuple[int, ...], got (1, 'a')"),
        ((1,), tuple[int, int], (), "rate must be tuple[int, int], got (1,)"),
        (64, tuple[int, ...] | None, None, "got 64; write a tuple, (64,)"),
        (
            (LinearSchedule(start=1, end=0), EnvironmentSteps(3), 2.0),
            tuple[int, ...],
            (),
            "got (LinearSchedule(...), EnvironmentSteps(count=3), 2.0)",
        ),
        ("dance", Literal["sparse", "dense"], "sparse", "must be 'sparse' or 'dense'"),
        ("play", Phase, Phase.TRAIN, "must be Phase, got 'play'; allowed: HEATUP, TRAIN, TEST"),
        (
            0.1,
            LinearSchedule,
            LinearSchedule(start=1, end=0),
            "rate must be LinearSchedule, got 0.1; set its own parameters, e.g. rate.start",
        ),
    ],
)
def test_does_not_fit(value: object, annotation: Any, current: object, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        fit(value, annotation, current, "rate")
    assert message in str(caught.value)


def test_a_tuple_is_advised_only_where_it_would_do() -> None:
    with pytest.raises(ConfigurationError) as caught:
        fit(-1.0, Positive[float] | tuple[Positive[float], ...], 2.0, "spacing")
    assert str(caught.value) == "spacing must be float > 0 | tuple[float > 0, ...], got -1.0"
    with pytest.raises(ConfigurationError, match=r"tuple\[float, ...\], got -1.0$"):
        fit(-1.0, Positive[float] | tuple[float, ...], 2.0, "spacing")


def test_types_that_exist_only_for_checkers_are_named() -> None:
    def function(x: "Missing") -> None: ...  # noqa: F821

    with pytest.raises(ConfigurationError, match="types of function cannot be resolved"):
        declared_types(function)


def test_describe_type_is_what_a_user_reads() -> None:
    assert describe_type(tuple[int, ...] | None) == "tuple[int, ...] | None"
    assert describe_type(Any) == "anything"
