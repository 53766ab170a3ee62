"""Names become environments."""

import pytest

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
def test_parameters_of_level_has_the_right_class(level, kind):
    found = parameters(level)
    assert type(found) is kind
    assert found.level == level


@pytest.mark.parametrize("level", TOYS)
def test_toys_by_name(level):
    assert parameters(level).level == level
    environment = make(level, num_envs=3)
    assert environment.num_envs == 3
    assert len(environment.reset(seed=0)) == 3


def test_parameters_keywords_are_fields():
    assert parameters("point_mass", max_episode_steps=7).max_episode_steps == 7
    assert parameters("hopper", threads=2).threads == 2
    assert parameters("CartPole-v1", vectorization="subprocess").vectorization == "subprocess"


def test_level_names():
    names = level_names()
    assert {"half_cheetah", "Humanoid-v5", "chain", "CartPole-v1"} <= set(names)
    assert len(set(names)) == len(names)
