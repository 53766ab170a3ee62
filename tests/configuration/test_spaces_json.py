"""Spaces are recorded with a run, and come back the same."""

import json

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.configuration.parameters_json import spaces_from_json, spaces_to_json
from coach_rl.core.spaces import EnvironmentSpaces

SPACES = [
    spaces.Box(-1, 1, (3,), np.float32),
    spaces.Box(np.array([-np.inf, -2.5]), np.array([np.inf, 0.1]), dtype=np.float64),
    spaces.Box(np.float32([[-4.8, 0.1], [1 / 3, 0]]), np.float32(9), (2, 2)),
    spaces.Box(0, 255, (84, 84, 4), np.uint8),
    spaces.Box(-np.inf, np.inf, (), np.float32),
    spaces.Box(-(2**62) - 1, 2**62 + 1, (2,), np.int64),
    spaces.Discrete(5, start=-2),
    spaces.MultiDiscrete([3, 4], start=[1, 0]),
    spaces.MultiDiscrete([[3, 4], [2, 2]], dtype=np.int32),
    spaces.MultiBinary(3),
    spaces.MultiBinary([2, 2]),
]


@pytest.mark.parametrize("space", SPACES, ids=str)
def test_spaces_json_round_trip_is_equal(space):
    known = EnvironmentSpaces(
        observation=spaces.Dict({"b": space, "a/b": spaces.Discrete(2)}),
        action=spaces.Dict({"z": space, "y": spaces.Box(0, 1)}),
    )
    document = json.loads(json.dumps(spaces_to_json(known), allow_nan=False))
    again = spaces_from_json(document, source="here")
    assert again == known
    assert list(again.observation) == list(known.observation)
    assert again.observation["b"].dtype == space.dtype


def test_spaces_json_equal_bounds_are_written_once():
    known = EnvironmentSpaces(
        observation=spaces.Dict({"image": SPACES[3]}), action=spaces.Discrete(2)
    )
    assert len(json.dumps(spaces_to_json(known))) < 300


OWN = {
    "numbers for keys": spaces.Dict({"0": spaces.Discrete(2), "1": spaces.Box(0, 1)}),
    "slashes in keys": spaces.Dict({"a/b": spaces.Discrete(2, dtype=np.uint8)}),
    "integer keys": spaces.Dict({0: spaces.Discrete(2), 1: spaces.MultiBinary(2)}),
    "nested": spaces.Tuple(
        (spaces.Dict({"x": spaces.Tuple((spaces.MultiDiscrete([2, 3], np.int8),))}), SPACES[1])
    ),
}


@pytest.mark.parametrize("own", OWN.values(), ids=OWN)
def test_spaces_json_keeps_the_own_action_space_and_its_dtypes(own):
    flat = spaces.Dict({"some": spaces.Discrete(2)})
    known = EnvironmentSpaces(observation=flat, action=flat, nested=own)
    document = json.loads(json.dumps(spaces_to_json(known), allow_nan=False))
    again = spaces_from_json(document, source="here").own_action
    assert again == own
    own.seed(0)
    assert again.contains(own.sample())
