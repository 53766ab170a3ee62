"""Parameter trees survive JSON, and nothing else comes out of it."""

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import IntFlag, StrEnum
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coach_rl.configuration import parameters_json
from coach_rl.configuration.parameters_json import encode, reference, spaces_to_json
from coach_rl.configuration.strict_json import from_json, read_json, to_json, write_json
from coach_rl.configuration.trust import Trust
from coach_rl.core.clock import LinearSchedule, Phase, PiecewiseSchedule
from coach_rl.core.errors import CoachWarning, ConfigurationError, require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.steps import EnvironmentSteps, StepUnit

MODULES = ("enum", "math", "no", "os", "subprocess", "nonsense", "5")
decode = partial(
    parameters_json.decode,
    trust=Trust(modules=frozenset({__name__, *MODULES})),
)
"""Here everything that documents name is trusted."""


class Colour(StrEnum):
    RED = "red"


class Bits(IntFlag):
    A = 1
    B = 2


def plain_function() -> None: ...


@dataclass(frozen=True, kw_only=True)
class Leaf:
    rate: float = 1e-3
    sizes: tuple[int, ...] = (64, 64)
    limit: EnvironmentSteps | None = None

    def __post_init__(self) -> None:
        require(self.rate >= 0, f"Leaf.rate must be 0 or more, got {self.rate}")


@dataclass
class Changeable:
    """A dataclass that is not frozen, as no parameters are."""

    number: int = 0

    def __post_init__(self) -> None:
        raise AssertionError("must not be made")


@dataclass(frozen=True, kw_only=True)
class Tree:
    leaf: Leaf = field(default_factory=Leaf)
    levels: tuple[Leaf, ...] = ()
    anything: Any = None
    options: Mapping[str, Any] = field(default_factory=dict)
    function: Callable[[], None] = plain_function

    @dataclass(frozen=True)
    class Inner:
        x: int = 1

    inner: "Tree.Inner" = field(default_factory=lambda: Tree.Inner())


def round_trip(value: object) -> Any:
    return decode(from_json(to_json(encode(value)), source="test"))


@pytest.mark.parametrize(
    "value",
    [
        Tree(),
        Tree(levels=(Leaf(rate=0.5), Leaf(limit=EnvironmentSteps(5))), options={"a": (1, 2.0)}),
        LinearSchedule(start=1.0, end=0.0, over=EnvironmentSteps(10)),
        PiecewiseSchedule(points=((0, 1.0), (10, 0.5))),
        Phase.TRAIN,
        Colour.RED,
        Bits.A | Bits.B,
        (),
        [1, [2.0], ("a",)],
        {"plain": 1},
        {1: "a", "$type": "b", (1, 2): None},
        True,
        1 << 200,
        -0.0,
        math.inf,
        Leaf,
        plain_function,
        math.sqrt,
    ],
    ids=lambda value: type(value).__name__,
)
def test_round_trip_is_equal_with_equal_types(value: object) -> None:
    back = round_trip(value)
    assert back == value
    assert type(back) is type(value)


def test_round_trip_numbers_keep_their_type() -> None:
    back = round_trip((1, 1.0, True))
    assert [type(part) for part in back] == [int, float, bool]
    assert math.isnan(round_trip(math.nan))


leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(),
    st.builds(EnvironmentSteps, st.integers(0, 10**9)),
    st.sampled_from([Colour.RED, Phase.TEST, Bits.B, StepUnit]),
    st.builds(Leaf, rate=st.floats(0, 1), sizes=st.lists(st.integers()).map(tuple)),
)
trees = st.recursive(
    leaves,
    lambda below: st.one_of(
        st.lists(below).map(tuple),
        st.lists(below),
        st.dictionaries(st.text(), below),
        st.builds(Tree, anything=below, options=st.dictionaries(st.text(), below)),
    ),
    max_leaves=8,
)


# The first text takes Hypothesis seconds: it makes a table of all characters.
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(trees)
def test_round_trip_of_any_tree(value: object) -> None:
    assert round_trip(value) == value


def make_local() -> object:
    @dataclass(frozen=True)
    class Local:
        x: int = 1

    return Local()


def test_decode_missing_field_has_its_default_with_a_warning() -> None:
    document = encode(Tree(leaf=Leaf(rate=0.5), levels=(Leaf(),)))
    del document["leaf"]["sizes"]
    with pytest.warns(CoachWarning) as caught:
        assert decode(document) == Tree(leaf=Leaf(rate=0.5), levels=(Leaf(),))
    assert [str(warning.message) for warning in caught] == [
        "parameters.leaf was written before Leaf had the field sizes; it takes its default, "
        "(64, 64)"
    ]


def test_write_json_failed_keeps_the_file(tmp_path: Any) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"x": 1})
    with suppress(ValueError):
        write_json(path, {"x": math.nan})
    assert read_json(path) == {"x": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]


def test_encode_whole_numbers_of_numpy_become_pythons() -> None:
    assert repr(encode((np.int64(3), np.bool_(True)))) == "[3, True]"


def test_public_class_is_named_by_the_package_wherever_its_module_is() -> None:
    assert encode(EnvironmentSteps(3)) == {"$type": "coach_rl:EnvironmentSteps", "count": 3}
    assert encode(GoalSpace) == {"$reference": "coach_rl:GoalSpace"}
    assert reference(spaces_to_json).startswith("coach_rl.configuration.")  # not a public name
    assert decode({"$type": "coach_rl.core.steps:EnvironmentSteps", "count": 3}).count == 3


@pytest.mark.parametrize("name", ["coach_rl:sys", "coach_rl:lazy_names", "coach_rl:TYPE_CHECKING"])
def test_decode_what_the_package_imports_is_no_public_name(name: str) -> None:
    with pytest.raises(ConfigurationError):
        decode({"$reference": name})
