"""Names from other libraries: each stands for something that there is, where there is one."""

import re
import warnings

import pytest

import coach_rl
from coach_rl.configuration.familiar_names import (
    familiar_fields,
    familiar_flags,
    familiar_settings,
    names_here,
)
from coach_rl.configuration.overrides import parameter_paths
from coach_rl.configuration.preset_file import Preset, load_preset
from coach_rl.configuration.presets import find_preset, shipped_presets
from coach_rl.core.errors import UnknownNameError, near_names


def known(preset: Preset) -> set[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        parameters = preset.build().parameters
    return {*preset.panel, *(path for path, _, _ in parameter_paths(parameters))}


@pytest.fixture(scope="module")
def by_preset():
    return {name: known(load_preset(each)) for name, each in shipped_presets().items()}


def test_no_name_from_elsewhere_is_a_setting_of_every_preset(by_preset):
    """It would never be unknown."""
    assert not set(names_here("settings")) & set.intersection(*by_preset.values())


@pytest.mark.parametrize(
    ("kind", "name", "meant"),
    [
        (coach_rl.PPOAlgorithmParameters, "gamma", ["discount"]),
        (coach_rl.PPOAgentParameters, "gamma", ["algorithm.discount"]),
        (coach_rl.GymnasiumParameters, "env_id", ["level"]),
        (coach_rl.ScheduleParameters, "improve_steps", ["training"]),
        (coach_rl.TorsoParameters, "net_arch", ["middleware"]),
        (coach_rl.TorsoParameters, "tau", []),
    ],
)
def test_field_from_elsewhere_means_what_the_class_has(kind, name, meant):
    assert familiar_fields(name, kind.__dataclass_fields__) == meant
    if meant:
        with pytest.raises(UnknownNameError, match=f"did you mean '{meant[0]}'"):
            kind(**{name: 1})


@pytest.mark.parametrize(
    ("preset", "name", "meant"),
    [
        ("CartPole_PPO", "lr", ["learning_rate"]),
        ("CartPole_PPO", "n_steps", ["agent.algorithm.rollout"]),
        ("CartPole_PPO", "ent_coef", ["agent.algorithm.entropy_coefficient"]),
        ("CartPole_PPO", "vf_coef", ["agent.algorithm.value_coefficient"]),
        ("CartPole_PPO", "batch_size", ["agent.algorithm.minibatch"]),
        ("CartPole_PPO", "clip_range", ["agent.algorithm.clip"]),
        ("CartPole_PPO", "net_arch", ["agent.network.torso.middleware"]),
        ("CartPole_PPO", "env_id", ["environment.level"]),
        ("CartPole_PPO", "tau", []),
        ("CartPole_PPO", "buffer_size", []),
        ("Mujoco_SAC", "ent_coef", ["temperature"]),
        ("Mujoco_SAC", "batch_size", ["batch"]),
        ("Mujoco_SAC", "tau", ["agent.algorithm.target_sync.rate"]),
        ("Mujoco_SAC", "hidden_sizes", ["layers"]),
        ("Mujoco_SAC", "total_timesteps", ["steps"]),
        ("CartPole_DQN", "target_update_interval", ["target_period"]),
        ("CartPole_DQN", "end_e", ["agent.exploration.epsilon.end"]),
    ],
)
def test_name_from_elsewhere_means_what_the_preset_has(by_preset, preset, name, meant):
    check_meant(by_preset[preset], preset, name, meant)


def check_meant(settings: set[str], preset: str, name: str, meant: list[str]) -> None:
    assert familiar_settings(name, sorted(settings)) == meant
    with pytest.raises(UnknownNameError) as caught:
        load_preset(find_preset(preset)).configure({name: 1})
    suggested = re.findall(r"'([\w.]+)'", str(caught.value).partition(";")[2])
    assert suggested == meant


@pytest.mark.parametrize(
    ("preset", "flag", "meant"),
    [
        ("CartPole_PPO", "--batch_size", ['-cp "agent.algorithm.minibatch=..."']),
        ("CartPole_PPO", "--policy-lr", ['-cp "learning_rate=..."']),
        ("CartPole_PPO", "--clip", ['-cp "agent.algorithm.clip=..."']),
        ("CartPole_PPO", "--seed", []),
        (
            "CartPole_PPO",
            "--tau",
            ["the setting agent.algorithm.target_sync.rate of other presets"],
        ),
        ("Mujoco_SAC", "--tau", ['-cp "agent.algorithm.target_sync.rate=..."']),
        ("Mujoco_SAC", "--env-id", ["-lvl"]),
    ],
)
def test_flag_from_elsewhere_means_what_the_preset_has(by_preset, preset, flag, meant):
    assert familiar_flags(flag, ["-cp", "-lvl"], sorted(by_preset[preset])) == meant


def test_setting_of_another_library_is_suggested_where_no_preset_is_named():
    assert familiar_flags("--gamma", ["-cp"], []) == ['-cp "discount=..."']
    assert familiar_flags("--gamma", ["-lvl"], []) == []


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("ent_coef", ["checkpoints.best_of", "best_of"]),
        ("env", ["on"]),
        ("algo", ["sampling"]),
        ("config", ["on"]),
        ("lr", ["l", "list", "help"]),
        ("resume", ["preset"]),
    ],
)
def test_far_fetched_names_are_not_suggested(name, allowed):
    assert near_names(name, allowed) == []
