"""Overrides are read without being executed and land where they were meant."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from coach_rl.configuration.overrides import apply_overrides, parse_overrides
from coach_rl.core.errors import ConfigurationError, UnknownNameError, require
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
        ("a=b==c", None),
        ("a", None),
        ("=1", None),
        ("a..b=1", None),
        ("a=", None),
        ("a=(1", None),
        ("a=__import__('os')", None),
        ("a=1; a=2", None),
        ("a b=1", None),
    ],
)
def test_parsing(text: str, expected: dict[str, object] | None) -> None:
    if expected is None:
        with pytest.raises(ConfigurationError) as caught:
            parse_overrides(text)
        assert "\n" not in str(caught.value)
    else:
        assert parse_overrides(text) == expected


def test_values_land_at_their_paths_and_the_original_stays() -> None:
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


def test_single_elements_of_a_tuple() -> None:
    after = apply_overrides(Parameters(), {"levels.0.algorithm.layers.1": 16})
    assert after.levels[0].algorithm.layers == (64, 16)


def test_an_element_that_is_named_instead_of_counted_is_suggested() -> None:
    @dataclass(frozen=True, kw_only=True)
    class Named(Level):
        name: str

    parameters = Parameters(levels=(Named(name="top"), Named(name="low")))
    with pytest.raises(UnknownNameError, match=r"'low' of 'levels'; did you mean 'levels\.1'\?"):
        apply_overrides(parameters, {"levels.low.horizon": 1})


def test_coupled_values_change_together() -> None:
    change = {"levels.0.algorithm.low": 5, "levels.0.algorithm.high": 6}
    assert apply_overrides(Parameters(), change).levels[0].algorithm == Algorithm(low=5, high=6)


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("nam", 1, "unknown parameter 'nam'; did you mean 'name'"),
        ("learning_rat", 1, "unknown parameter 'learning_rat'; did you mean 'learning_rate'"),
        (
            "levels.0.algorthm.discount",
            1,
            "unknown parameter 'algorthm' of 'levels.0'; did you mean 'algorithm'",
        ),
        (
            "levels.0.algorithm.discout",
            1,
            "parameter 'discout' of 'levels.0.algorithm'; did you mean 'discount'",
        ),
        ("levels.2.horizon", 1, "unknown parameter '2' of 'levels'; allowed: 0, 1"),
        ("levels.-1.horizon", 1, "unknown parameter '-1' of 'levels'"),
        (
            "options.frame_skp",
            1,
            "unknown parameter 'frame_skp' of 'options'; did you mean 'frame_skip'",
        ),
        ("name.first", 1, "'name' is 'x' and has no parameter 'first' below it"),
        ("levels.0.horizon.x", 1, "'levels.0.horizon' is None and has no parameter 'x' below it"),
        (
            "levels.0.algorithm.discount",
            "high",
            "levels.0.algorithm.discount must be float, got 'high'",
        ),
        (
            "levels.0",
            3,
            "levels.0 must be Level, got 3; set its own parameters, e.g. levels.0.algorithm",
        ),
        ("options.frame_skip", "x", "options.frame_skip must be float, got 'x'"),
        ("levels.0.algorithm.discount", 2, "Algorithm.discount must lie in [0, 1], got 2.0"),
    ],
)
def test_wrong_paths_and_values_say_where(path: str, value: object, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        apply_overrides(Parameters(), {path: value}, panel=["learning_rate"])
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "names", [("levels.0", "levels.0.horizon"), ("levels.0.horizon", "levels.0")]
)
def test_overlapping_overrides_are_refused(names: tuple[str, str]) -> None:
    overrides: dict[str, Any] = dict.fromkeys(names, 1)
    with pytest.raises(ConfigurationError, match="overlaps another one"):
        apply_overrides(Parameters(), overrides)


def test_unknown_names_are_configuration_errors_with_exit_code_2() -> None:
    with pytest.raises(UnknownNameError) as caught:
        apply_overrides(Parameters(), {"zzz": 1})
    assert caught.value.exit_code == 2
