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


def check_meant(settings: set[str], preset: str, name: str, meant: list[str]) -> None:
    assert familiar_settings(name, sorted(settings)) == meant
    with pytest.raises(UnknownNameError) as caught:
        load_preset(find_preset(preset)).configure({name: 1})
    suggested = re.findall(r"'([\w.]+)'", str(caught.value).partition(";")[2])
    assert suggested == meant


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
