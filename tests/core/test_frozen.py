"""Parameters that hold mappings cannot be changed through them."""

import pickle

import numpy as np
import pytest

from coach_rl.core.typed_values import FrozenMapping, frozen, thawed


def test_nothing_reaches_into_a_frozen_mapping():
    given = {"list": [1, [2]], "dict": {"x": 1}, "array": np.zeros(2), "pair": (1, [2])}
    mapping = FrozenMapping(given)
    given["list"].append(3)
    given["dict"]["x"] = 2
    given["array"][:] = 1
    mapping["list"][1].append(3)
    mapping["pair"][1].append(3)
    mapping["array"][:] = 1
    for change in (mapping, mapping["dict"]):
        with pytest.raises(TypeError, match="item assignment"):
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
