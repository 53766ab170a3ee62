"""Overrides are read without being executed and land where they were meant."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import pytest

from coach_rl.configuration.overrides import (
    Component,
    InPlaceOf,
    apply_overrides,
    parse_overrides,
)
from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.steps import EnvironmentSteps


@dataclass(frozen=True, kw_only=True)
class Algorithm:
    discount: float = 0.99
    layers: tuple[int, ...] = (64, 64)
    low: int = 0
    high: int = 1

    def __post_init__(self) -> None:
        require(
            0 <= self.discount <= 1, f"Algorithm.discount must lie in [0, 1], got {self.discount}"
        )
        require(self.low < self.high, f"Algorithm.low must be below high, got {self.low}")


@dataclass(frozen=True, kw_only=True)
class Level:
    algorithm: Algorithm = field(default_factory=Algorithm)
    horizon: int | None = None


@dataclass(frozen=True, kw_only=True)
class Parameters:
    levels: tuple[Level, ...] = (Level(), Level())
    pair: tuple[Level, float] | None = (Level(), 0.5)
    steps: EnvironmentSteps = EnvironmentSteps(100)
    options: Mapping[str, float] = field(default_factory=lambda: {"frame_skip": 4.0})
    name: str = "x"
    num_envs: int = 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        (" ; ", {}),
        ("a=1", {"a": 1}),
        ("a = 1e-3 ; b.c.0.d='x;y=z' ;", {"a": 1e-3, "b.c.0.d": "x;y=z"}),
        ("a=(1, (2, 3)); b={'k': [1]}", {"a": (1, (2, 3)), "b": {"k": [1]}}),
        (
            "a=half_cheetah; b=HalfCheetah-v5; c=a/b.xml",
            {"a": "half_cheetah", "b": "HalfCheetah-v5", "c": "a/b.xml"},
        ),
        ("a=None; b=True; c=-1; d=1_000", {"a": None, "b": True, "c": -1, "d": 1000}),
        (r"a='it\'s; fine'", {"a": "it's; fine"}),
        (r"a='x\\';b=2", {"a": "x\\", "b": 2}),
        (r"a='x\\\';b';b=2", {"a": "x\\';b", "b": 2}),
        ('a=["x;", "y"]', {"a": ["x;", "y"]}),
    ],
)
def test_parse_overrides_values_are_literals_or_words(text, expected):
    assert parse_overrides(text) == expected


def test_apply_overrides_original_stays():
    before = Parameters()
    after = apply_overrides(
        before,
        {
            "levels.0.horizon": 10,
            "levels.1.algorithm.discount": 1,
            "levels.1.algorithm.layers": [32],
            "pair.0.horizon": 3,
            "pair.1": 2,
            "steps": 5,
            "options.frame_skip": 2,
        },
    )
    expected = Parameters(
        levels=(Level(horizon=10), Level(algorithm=Algorithm(discount=1.0, layers=(32,)))),
        pair=(Level(horizon=3), 2.0),
        steps=EnvironmentSteps(5),
        options={"frame_skip": 2.0},
    )
    assert after == expected
    assert repr(after) == repr(expected)
    assert before == Parameters()


def test_apply_overrides_element_of_a_tuple_is_set():
    after = apply_overrides(Parameters(), {"levels.0.algorithm.layers.1": 16})
    assert after.levels[0].algorithm.layers == (64, 16)


def test_elements_in_place_of_those_of_their_class_leave_the_others():
    before = Parameters(pair=(Level(), 0.5))
    other = Level(horizon=3)
    both = InPlaceOf({Level: (other,)}) | InPlaceOf({float: (0.25,)})
    assert apply_overrides(before, {"pair": both}).pair == (other, 0.25)
    several = InPlaceOf({Algorithm: ()}).within((1, Algorithm(), Level()))
    assert several == (1, Level())


def test_apply_overrides_coupled_values_change_together():
    change = {"levels.0.algorithm.low": 5, "levels.0.algorithm.high": 6}
    assert apply_overrides(Parameters(), change).levels[0].algorithm == Algorithm(low=5, high=6)


def test_changes_may_be_an_object_of_json():
    first = (
        '{"lr": 1e-3, "a.b": [64, 64], "c": null, "d": true, "e": "x:y z", "f": "ran", "g": "2"}'
    )
    assert parse_overrides(f'{first}; h=3; {{"i": "GRU()"}}') == {
        "lr": 1e-3,
        "a.b": [64, 64],
        "c": None,
        "d": True,
        "e": "x:y z",
        "f": "ran",
        "g": "2",
        "h": 3,
        "i": Component("GRU", {}),
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('{"a": 1,}', 'not valid JSON: .*; write \'{"name": value'),
        ("{'a': 1}", "not valid JSON"),
        ('{"a b": 1}', "cannot read the override 'a b'; give a name or a path"),
        ('{"a": 1, "a": 2}', "twice"),
        ('a=1; {"a": 2}', "the override 'a' is given twice"),
    ],
)
def test_object_of_json_that_cannot_be_read_error(text, problem):
    with pytest.raises(ConfigurationError, match=problem):
        parse_overrides(text)
