"""Observations in another dtype than that of their space: kept, refused, or rounded with a warning.

The same holds for single environments, those in worker processes and ready vector environments.
"""

import warnings
from functools import partial

import numpy as np
import pytest

from coach_rl.core.errors import CoachWarning, EnvironmentFault, NonFiniteError
from coach_rl.environments.gymnasium import GymnasiumParameters

KEY = "camera/left"
HERE = ["sync", "vector"]
FAR = 5.5e6
"""Where float32 numbers are half a unit apart."""


def build(way, **kwargs):
    name = "ShowsMany" if way == "vector" else "Shows"
    parameters = GymnasiumParameters(
        level=f"casting_environments:{name}", kwargs=kwargs, vectorization=way
    )
    return parameters.build(num_envs=2)


def last_shown(environment, steps=0):
    """What the environment's last row shows last; all are closed."""
    try:
        response = environment.reset(seed=0)
        for _ in range(steps):
            action = np.zeros(2, np.int64)
            is_named = "dog/still" in environment.spaces.observation.spaces
            environment.send({"cat": action, "dog": action} if is_named else action)
            response = environment.recv()
        (key,) = (each for each in response.observation if each in (KEY, f"dog/{KEY}"))
        return response.first_observation[key][-1]
    finally:
        environment.close()


def noted(call):
    """The warnings of a call."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        call()
    return [str(each.message) for each in warned if issubclass(each.category, CoachWarning)]


WRONG = [
    ("int64", 300, "int8", "300 (int64), which int8 makes 44"),
    ("uint16", 300, "uint8", "300 (uint16), which uint8 makes 44"),
    ("int64", 2**33, "int32", "8589934592 (int64), which int32 makes 0"),
    ("int8", -1, "uint8", "-1 (int8), which uint8 makes 255"),
    ("uint64", 2**63, "int64", "9223372036854775808 (uint64), which int64 makes -92"),
    ("float32", 0.7, "uint8", "is float32, its space uint8"),
]


@pytest.mark.parametrize(
    ("way", "given", "number", "declared", "message"),
    [("subprocess", *WRONG[0]), *((way, *wrong) for way in HERE for wrong in WRONG)],
)
def test_observation_that_its_dtype_lacks_stops_run(way, given, number, declared, message):
    check_that_its_dtype_lacks_stops_run(partial(build, way), given, number, declared, message)


def check_that_its_dtype_lacks_stops_run(build, given, number, declared, message):
    environment = build(given=given, number=number, declared=declared)
    with pytest.raises(EnvironmentFault) as raised:
        last_shown(environment)
    assert message in str(raised.value)
    assert f"{KEY}'" in str(raised.value)


@pytest.mark.parametrize("way", HERE)
def test_observation_integers_are_compared_at_every_step(way):
    check_integers_are_compared_at_every_step(partial(build, way))


def check_integers_are_compared_at_every_step(build):
    environment = build(given="int64", number=300, declared="uint8", at=100)
    with pytest.raises(EnvironmentFault, match="which uint8 makes 44"):
        last_shown(environment, steps=100)


def test_vector_observation_that_its_dtype_lacks_names_row():
    with pytest.raises(EnvironmentFault, match="'camera/left' of row 1 is 300"):
        last_shown(build("vector", given="int64", number=300, declared="int8"))


KEPT = [
    ("int64", 200, "uint8"),
    ("uint8", 100, "int8"),
    ("uint64", 5, "int64"),
    ("int8", -5, "int64"),
    ("float64", 0.1, "float32"),
    ("float64", 999.999, "float32"),
    ("int64", 1000, "float32"),
    ("float32", 0.5, "float64"),
    ("float64", 0.1, "float16"),
]


@pytest.mark.parametrize(
    ("given", "number", "declared"),
    KEPT,
)
@pytest.mark.parametrize("way", HERE)
def test_observation_that_its_dtype_has_is_shown(way, given, number, declared):
    check_that_its_dtype_has_is_shown(partial(build, way), given, number, declared)


def check_that_its_dtype_has_is_shown(build, given, number, declared):
    middle = number if number > 1000 else 0.0
    shown = []
    environment = build(given=given, number=number, declared=declared, middle=middle)
    assert not noted(lambda: shown.append(last_shown(environment, steps=2)))
    np.testing.assert_array_equal(shown[0], np.full(2, number).astype(declared))


@pytest.mark.parametrize("way", ["subprocess", *HERE])
def test_observation_rounded_by_more_than_millionth_of_range_warns_once(way):
    check_rounded_by_more_than_millionth_of_range_warns_once(partial(build, way))


def check_rounded_by_more_than_millionth_of_range_warns_once(build):
    kwargs = {"given": "float64", "number": FAR + 0.2, "declared": "float32", "middle": FAR}
    (message, *more) = set(noted(lambda: last_shown(build(**kwargs), steps=10)))
    assert not more
    assert f"{KEY}'" in message
    assert "5500000.2 (float64), which float32 makes 5500000.0" in message
    assert "subtract an origin" in message


@pytest.mark.parametrize(
    ("at", "length", "is_noted"), [(60, 10**6, True), (80, 10**6, False), (80, 20, True)]
)
@pytest.mark.parametrize("way", HERE)
def test_observation_floats_are_compared_early_and_at_starts(way, at, length, is_noted):
    check_floats_are_compared_early_and_at_starts(partial(build, way), at, length, is_noted)


def check_floats_are_compared_early_and_at_starts(build, at, length, is_noted):
    kwargs = {"given": "float64", "number": FAR + 0.2, "declared": "float32", "middle": FAR}
    environment = build(**kwargs, at=at, length=length)
    assert bool(noted(lambda: last_shown(environment, steps=100))) == is_noted


@pytest.mark.parametrize("way", HERE)
def test_observation_that_float32_makes_infinite_stops_run_without_another_warning(way):
    check_that_float32_makes_infinite_stops_run_without_another_warning(partial(build, way))


def check_that_float32_makes_infinite_stops_run_without_another_warning(build):
    environment = build(given="float64", number=1e300, declared="float32", at=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(NonFiniteError) as raised:
            last_shown(environment, steps=10)
    assert "1e+300 (float64), which float32 makes inf" in str(raised.value)
    assert f"{KEY}' of row 1 is" in str(raised.value) or "row 0 of" in str(raised.value)
    assert "failed in step" in str(raised.value)
