"""Names become environments."""

import pytest

from coach_rl.core.errors import ParameterError, UnknownNameError
from coach_rl.environments import level_names, make, parameters
from coach_rl.environments.by_name import TOYS
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.mujoco import MujocoParameters


@pytest.mark.parametrize(
    ("level", "kind"),
    [
        ("half_cheetah", MujocoParameters),
        ("HalfCheetah-v5", MujocoParameters),
        ("HalfCheetah-v4", GymnasiumParameters),
        ("CartPole-v1", GymnasiumParameters),
        ("little_environments:Walk", GymnasiumParameters),
        ("little_environments:LittlePlain-v0", GymnasiumParameters),
    ],
)
def test_levels_find_their_parameters(level, kind):
    found = parameters(level)
    assert type(found) is kind
    assert found.level == level


@pytest.mark.parametrize("level", TOYS)
def test_toys_by_name(level):
    assert parameters(level).level == level
    environment = make(level, num_envs=3)
    assert environment.num_envs == 3
    assert len(environment.reset(seed=0)) == 3


def test_keywords_are_the_parameters_fields():
    assert parameters("point_mass", max_episode_steps=7).max_episode_steps == 7
    assert parameters("hopper", threads=2).threads == 2
    assert parameters("CartPole-v1", vectorization="subprocess").vectorization == "subprocess"


@pytest.mark.parametrize(
    ("level", "kwargs", "line"),
    [
        ("point_mass", {"max_episode_step": 7}, "did you mean 'max_episode_steps'"),
        ("hopper", {"vectorization": "sync"}, "'hopper' has no parameter 'vectorization'"),
        ("one_step_continuous", {"continuous": False}, "no parameter 'continuous'; allowed: size"),
        ("CartPole-v1", {"max_steps": 5}, "its parameters are the fields of GymnasiumParameters"),
    ],
)
def test_unknown_fields(level, kwargs, line):
    with pytest.raises(ParameterError, match=line):
        parameters(level, **kwargs)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("half_cheeta", "half_cheetah"),
        ("halfcheetah-v5", "HalfCheetah-v5"),
        ("CartPole", "CartPole-v1"),
        ("pointmass", "point_mass"),
    ],
)
def test_unknown_levels(name, near):
    with pytest.raises(UnknownNameError, match=f"did you mean .*'{near}'") as caught:
        make(name)
    assert "module:Class" in str(caught.value)


def test_a_package_that_registers_a_level_is_named():
    with pytest.raises(UnknownNameError, match=r"ale_py registers it: .* ale_py:ALE/Pong-v5"):
        make("ALE/Pong-v5")


def test_a_class_where_its_name_belongs():
    with pytest.raises(ParameterError, match=r"task must be a name, .*:MujocoParameters'"):
        make(MujocoParameters)


def test_level_names():
    names = level_names()
    assert {"half_cheetah", "Humanoid-v5", "chain", "CartPole-v1"} <= set(names)
    assert len(set(names)) == len(names)
