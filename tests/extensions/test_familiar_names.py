"""Names from other libraries are answered with ours, of all extensions."""

from pathlib import Path

import pytest

import coach_rl
from coach_rl.cli.commands import COMMANDS as OWN_COMMANDS
from coach_rl.cli.commands import RUNS
from coach_rl.cli.parser import DEBUG, PLAIN
from coach_rl.configuration.extensions import own_extensions
from coach_rl.configuration.familiar_names import names_here
from tests.configuration.test_familiar_names import by_preset, check_meant

__all__ = ["by_preset"]

CHECKOUT = Path(coach_rl.__file__).resolve().parents[1]


def test_every_setting_suggested_is_one_of_some_preset(by_preset: dict[str, set[str]]) -> None:
    everything = set().union(*by_preset.values())
    suggested = {name for names in names_here("settings").values() for name in names}
    assert suggested <= everything


def test_every_flag_suggested_is_a_flag_or_a_command() -> None:
    flags = {spelling for flag in (*RUNS, PLAIN, DEBUG) for spelling in flag.spellings}
    for each in {name for names in names_here("flags").values() for name in names}:
        if each.startswith("-"):
            assert each in flags
        elif each.startswith("coach "):
            assert each.removeprefix("coach ") in OWN_COMMANDS
        else:
            assert (CHECKOUT / each).is_file()


def test_every_command_and_class_suggested_exists() -> None:
    commands, classes = names_here("commands"), names_here("classes")
    suggested = {name for names in commands.values() for name in names}
    assert {name for name in suggested if name != "--version"} <= OWN_COMMANDS.keys()
    meant = {name.partition("(")[0] for names in classes.values() for name in names}
    assert {name for name in meant if name.isidentifier()} <= set(coach_rl.__all__)
    assert not set(classes) & set(coach_rl.__all__)


def test_no_extension_repeats_a_name_from_elsewhere() -> None:
    names = [
        (kind, name)
        for each in own_extensions()
        for kind, by_name in each.familiar.items()
        for several in by_name
        for name in several.split()
    ]
    assert len(names) == len({*names})


def test_name_from_elsewhere_of_an_extension_is_suggested() -> None:
    with pytest.raises(AttributeError, match="did you mean VideoParameters"):
        getattr(coach_rl, "VecVideoRecorder")  # noqa: B009 - no name that type checkers know


def test_name_from_elsewhere_means_what_a_preset_of_hac_has(by_preset) -> None:
    check_meant(by_preset["Pendulum_HAC"], "Pendulum_HAC", "gamma", ["discount"])
