"""Ranges that types declare hold for values, and are described as a user reads them."""

import math
from typing import Annotated

import pytest
from annotated_types import Ge, Interval, Le, Lt, MinLen

from coach_rl.core.errors import ParameterError
from coach_rl.core.ranges import NonEmpty, NonNegative, Positive, Rising, RisingPair, UnitInterval
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.core.typed_values import describe_type, fit

NAN, INF = math.nan, math.inf


@pytest.mark.parametrize(
    ("annotation", "described", "inside", "outside"),
    [
        (Positive[float], "float > 0", (1e-9, 3), (0, -1, -0.0, NAN, INF)),
        (Positive[int] | None, "int > 0 | None", (1, None), (0, -3)),
        (NonNegative[float], "float >= 0", (0, 2.5), (-1e-9, NAN, INF)),
        (UnitInterval, "float in [0, 1]", (0, 0.5, 1), (-0.1, 1.1, NAN)),
        (Annotated[float, Interval(gt=0, le=1)], "float in (0, 1]", (1e-9, 1), (0, 1.1)),
        (Annotated[float, Interval(ge=0, lt=1)], "float in [0, 1)", (0, 0.9), (-0.1, 1)),
        (Annotated[float, Lt(0)], "float < 0", (-1,), (0,)),
        (Annotated[float, Le(0)], "float <= 0", (0,), (0.1,)),
        (Annotated[EnvironmentSteps, Ge(2)], "EnvironmentSteps >= 2", (2, 1e3), (1, 0)),
        (tuple[Positive[int], ...], "tuple[int > 0, ...]", ((), (1, 2)), ((1, 0),)),
        (NonEmpty[tuple[str, ...]], "tuple[str, ...] of length >= 1", (("a",),), ((),)),
        (Annotated[str, MinLen(2)], "str of length >= 2", ("ab",), ("a",)),
        (RisingPair, "tuple[float, float] with low < high", ((0, 1),), ((1, 1), (1, 0))),
        (
            Annotated[tuple[float, float], Rising(strictly=False)],
            "tuple[float, float] with low <= high",
            ((0, 1), (1, 1)),
            ((1, 0), (0, NAN)),
        ),
        (Annotated[int, "a note for other tools"], "int", (-1, 0), ()),
    ],
)
def test_fit_value_outside_its_range_error(annotation, described, inside, outside):
    assert describe_type(annotation) == described
    for value in inside:
        fit(value, annotation, None, "here")
    for value in outside:
        with pytest.raises(ParameterError) as caught:
            fit(value, annotation, None, "here")
        assert str(caught.value).startswith(f"here must be {described}, got {value!r}")
