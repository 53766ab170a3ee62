"""A profile shows the time of each filter below `filter`."""

import numpy as np
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.parts import timed_calls

SEEN = spaces.Dict({"x": spaces.Box(-9, 9, (1,), np.float32)})


def names(whole):
    return {(call.name, call.method) for call in timed_calls(whole)}


def test_timed_calls_input_filter_names_each_filter():
    twice = (rl.ObservationNormalizationFilter(), rl.ObservationNormalizationFilter())
    chain = rl.InputFilter(
        observation={"x": twice}, reward=(rl.RewardRescaleFilter(factor=2.0),)
    ).build(SEEN)
    found = names(chain)
    assert {("filter", "observation"), ("filter", "reward")} <= found
    for place in ("observation/x/0", "observation/x/1"):
        for method in ("advance", "update", "apply"):
            assert (f"{place} ObservationNormalizationFilter", method) in found
    assert ("reward/0 RewardRescaleFilter", "apply") in found


def test_timed_calls_output_filter_names_each_filter():
    box = spaces.Box(-2, 2, (1,), np.float32)
    found = names(rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=-1, high=1),)).build(box))
    assert found == {("filter", "apply"), ("action/0 LinearBoxToBoxMap", "apply")}


def test_timed_calls_without_filters_are_none():
    assert not names(rl.InputFilter().build(SEEN))
    assert not names(rl.OutputFilter().build(SEEN["x"]))
