"""Values that users type are fitted to declared types, or refused with the type named."""

import pickle
from collections.abc import Mapping
from typing import Any, Literal

import numpy as np
import pytest

from coach_rl.core.clock import LinearSchedule, Phase
from coach_rl.core.steps import (
    EnvironmentEpisodes,
    EnvironmentSteps,
    Hours,
    RunLength,
    StepUnit,
    TrainingSteps,
)
from coach_rl.core.typed_values import FrozenMapping, describe_type, fit, frozen, thawed


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
def test_fit_value_is_converted_to_the_declared_type(value, annotation, current, expected):
    fitted = fit(value, annotation, current, "name")
    assert fitted == expected
    assert repr(fitted) == repr(expected)


def test_describe_type_is_what_a_user_reads():
    assert describe_type(tuple[int, ...] | None) == "tuple[int, ...] | None"
    assert describe_type(Any) == "anything"


def test_frozen_mapping_content_cannot_be_changed():
    given = {"list": [1, [2]], "dict": {"x": 1}, "array": np.zeros(2), "pair": (1, [2])}
    mapping = FrozenMapping(given)
    given["list"].append(3)
    given["dict"]["x"] = 2
    given["array"][:] = 1
    mapping["list"][1].append(3)
    mapping["pair"][1].append(3)
    mapping["array"][:] = 1
    for change in (mapping, mapping["dict"]):
        with pytest.raises(TypeError):
            change["x"] = 2
    assert mapping["list"] == [1, [2]]
    assert mapping["pair"] == (1, [2])
    assert mapping["dict"] == {"x": 1}
    assert not mapping["array"].any()


def test_frozen_mappings_are_values():
    mapping, same = FrozenMapping({"a": [1, {"b": 2}]}), FrozenMapping([("a", [1, {"b": 2}])])
    assert mapping == same == {"a": [1, {"b": 2}]}
    assert hash(mapping) == hash(same)
    assert pickle.loads(pickle.dumps(mapping)) == mapping
    assert repr(FrozenMapping({"a": (1, {"b": 2})})) == "{'a': (1, {'b': 2})}"
    assert len(mapping) == 1


def test_frozen_turns_lists_and_arrays_into_tuples():
    value = frozen({"a": [1, {"b": np.ones(2)}]})
    assert value == {"a": (1, {"b": (1.0, 1.0)})}
    assert hash(value) == hash(frozen({"a": (1, {"b": (1.0, 1.0)})}))


def test_thawed_gives_plain_dicts_and_keeps_lists():
    value = thawed(FrozenMapping({"a": [{"b": ({"c": 1},)}]}))
    assert value == {"a": [{"b": ({"c": 1},)}]}
    assert [type(part) for part in (value, value["a"], value["a"][0])] == [dict, list, dict]
    assert type(value["a"][0]["b"][0]) is dict
