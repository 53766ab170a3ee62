"""Names from other libraries are answered with ours, of all extensions."""

import pytest

import coach_rl
from coach_rl.cli.commands import COMMANDS as OWN_COMMANDS
from coach_rl.cli.commands import RUNS
from coach_rl.cli.parser import DEBUG, PLAIN
from coach_rl.configuration import familiar_flags
from coach_rl.configuration.extensions import familiar_names, own_extensions
from coach_rl.core.familiar_names import CLASSES, SETTINGS
from tests.core.test_familiar_names import by_preset, check_meant

__all__ = ["by_preset"]


def test_every_setting_suggested_is_one_of_some_preset(by_preset: dict[str, set[str]]) -> None:
    everything = set().union(*by_preset.values())
    assert [name for names in SETTINGS.values() for name in names if name not in everything] == []


def test_every_flag_suggested_is_a_flag() -> None:
    flags = [spelling for flag in (*RUNS, PLAIN, DEBUG) for spelling in flag.spellings]
    known = familiar_flags.flags()
    assert [flag for names in known.values() for flag in names if flag not in flags] == []
    for name in SETTINGS:
        found = familiar_flags.familiar_flags(f"--{name}")
        assert all(each.partition(" ")[0] in flags for each in found or ())


def test_every_command_and_class_suggested_exists() -> None:
    commands, classes = (
        familiar_flags.commands(),
        CLASSES | familiar_names("classes", own_extensions()),
    )
    assert {name for names in commands.values() for name in names} <= OWN_COMMANDS.keys()
    assert {name for names in classes.values() for name in names} <= set(coach_rl.__all__)
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
