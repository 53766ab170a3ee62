"""Parameter trees survive JSON, and nothing else comes out of it."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntFlag, StrEnum
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coach_rl.agents.hierarchies.option_critic_agent import OptionCriticAgentParameters
from coach_rl.agents.ppo_agent import PPOAgentParameters
from coach_rl.configuration import parameters_json
from coach_rl.configuration.parameters_json import encode
from coach_rl.configuration.strict_json import from_json, read_json, to_json, write_json
from coach_rl.configuration.trust import Trust
from coach_rl.core.clock import LinearSchedule, Phase, PiecewiseSchedule
from coach_rl.core.errors import (
    CheckpointError,
    CoachWarning,
    ConfigurationError,
    ParameterError,
    require,
)
from coach_rl.core.options import OptionSpace
from coach_rl.core.steps import EnvironmentSteps, StepUnit

decode = partial(
    parameters_json.decode,
    trust=Trust(modules=frozenset({__name__, "math", "no", "os", "subprocess", "nonsense", "5"})),
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


def test_numbers_keep_their_kind() -> None:
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


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (Tree(anything=object()), "parameters.anything is a object"),
        (Tree(anything=lambda: None), "cannot be imported"),
        (make_local(), "cannot be imported"),
        (Tree(options={"a": (0, {1, 2})}), "parameters.options.a.1 is a set"),
    ],
)
def test_what_could_not_come_back_is_refused(value: object, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        encode(value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rat": 1.0}, "unknown field 'rat' of Leaf in parameters; did you mean 'rate'"),
        ({"$type": "subprocess:Popen"}, "'subprocess:Popen', which is not a frozen dataclass"),
        ({"$type": "subprocess:Popn"}, "unknown name 'Popn' in module 'subprocess'; did you mean"),
        ({"$type": "no.such.module:X"}, "needs the module 'no.such.module'"),
        ({"$type": "nonsense"}, "expected 'module:QualName'"),
        ({"$type": 5}, "expected 'module:QualName'"),
    ],
)
def test_documents_that_do_not_fit_are_refused(change: dict[str, Any], message: str) -> None:
    document = encode(Leaf()) | change
    with pytest.raises(ConfigurationError) as caught:
        decode(document)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_field_takes_its_default_and_says_so() -> None:
    document = encode(Tree(leaf=Leaf(rate=0.5), levels=(Leaf(),)))
    del document["leaf"]["sizes"]
    with pytest.warns(CoachWarning) as caught:
        assert decode(document) == Tree(leaf=Leaf(rate=0.5), levels=(Leaf(),))
    assert [str(warning.message) for warning in caught] == [
        "parameters.leaf was written before Leaf had the field sizes; it takes its default, "
        "(64, 64)"
    ]


def test_agents_of_earlier_releases_keep_their_unscaled_actions() -> None:
    for agent in (PPOAgentParameters(), OptionCriticAgentParameters()):
        assert agent.scale_actions
        document = encode(agent)
        del document["scale_actions"]
        with pytest.warns(CoachWarning, match="scale_actions; it takes the value of that time, Fa"):
            assert decode(document) == replace(agent, scale_actions=False)


def test_a_missing_field_without_a_default_is_refused() -> None:
    document = encode(EnvironmentSteps(5))
    del document["count"]
    with pytest.raises(ConfigurationError, match="lacks the fields count of EnvironmentSteps"):
        decode(document)


def test_rules_are_checked_again() -> None:
    with pytest.raises(ParameterError, match=r"Leaf\.rate"):
        decode(encode(Leaf()) | {"rate": -1.0})


def test_tags_are_checked_against_what_they_name() -> None:
    with pytest.raises(ConfigurationError, match="not an enum"):
        decode({"$enum": "subprocess:Popen", "value": 1})
    with pytest.raises(ConfigurationError, match="no class and no function"):
        decode({"$reference": "os:environ"})
    with pytest.raises(ConfigurationError, match="is not a valid Phase"):
        decode({"$enum": "coach_rl.core.clock:Phase", "value": "play"})


def test_a_named_tuple_is_refused() -> None:
    from typing import NamedTuple

    class Pair(NamedTuple):
        a: int

    with pytest.raises(ConfigurationError, match="is a Pair, which JSON cannot rebuild"):
        encode(Pair(1))


@pytest.mark.parametrize("text", ["[NaN]", '{"a": 1, "a": 2}', "[1,", ""])
def test_json_is_strict(text: str) -> None:
    with pytest.raises(CheckpointError, match="here is not valid JSON"):
        from_json(text, source="here")


def test_json_files_are_replaced_whole(tmp_path: Any) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"x": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        write_json(path, {"x": math.nan})
    assert read_json(path) == {"x": 1}
    assert [file.name for file in tmp_path.iterdir()] == ["a.json"]
    with pytest.raises(CheckpointError, match="cannot read"):
        read_json(tmp_path / "b.json")


def test_whole_numbers_of_numpy_become_pythons() -> None:
    assert repr(encode((np.int64(3), np.bool_(True)))) == "[3, True]"
    with pytest.raises(ConfigurationError, match="is a float32, which JSON cannot rebuild"):
        encode(np.float32(0.1))  # which is another number in Python


def test_a_class_that_has_moved_is_found_under_its_earlier_name():
    document = encode(OptionSpace(count=3))
    assert document["$type"] == "coach_rl.core.options:OptionSpace"
    assert decode(document | {"$type": "coach_rl.core.goals:OptionSpace"}) == OptionSpace(count=3)
