"""Names become environments."""

import numpy as np
import pytest

from coach_rl.core.errors import ConfigurationError, ParameterError, UnknownNameError
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


def test_level_names():
    names = level_names()
    assert {"half_cheetah", "Humanoid-v5", "chain", "CartPole-v1"} <= set(names)
    assert len(set(names)) == len(names)


def test_the_seed_is_for_the_first_reset_without_one():
    def starts(seed, *resets):
        environment = make("point_mass", num_envs=2, seed=seed)
        return [environment.reset(given).observation["observation"].tolist() for given in resets]

    plain = make("point_mass", num_envs=2)
    first = plain.reset(4).observation["observation"].tolist()
    second = plain.reset().observation["observation"].tolist()
    assert starts(4, None, None) == [first, second]
    assert starts(9, 4, None) == [first, second]


def test_the_seed_waits_in_the_saved_state():
    fresh = make("point_mass", seed=4)
    other = make("point_mass", seed=9)
    other.reset()
    other.load_state_dict(fresh.state_dict())
    np.testing.assert_array_equal(
        fresh.reset().observation["observation"], other.reset().observation["observation"]
    )


def test_pictures_pass_through():
    environment = make("little_environments:Plain", seed=0, kwargs={"render_mode": "rgb_array"})
    environment.reset()
    assert environment.render().shape == (4, 5, 3)
    with pytest.raises(ConfigurationError, match="WorldEnvironment has no pictures"):
        make("point_mass", seed=0).render()
