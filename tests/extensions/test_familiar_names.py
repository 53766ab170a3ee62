"""Names from other libraries are answered with ours, of all extensions."""

import coach_rl
from coach_rl.cli.commands import COMMANDS as OWN_COMMANDS
from coach_rl.cli.commands import RUNS
from coach_rl.cli.parser import DEBUG, PLAIN
from coach_rl.core.familiar_names import (
    CLASSES,
    COMMANDS,
    FLAGS,
    SETTINGS,
    familiar_flags,
)
from tests.core.test_familiar_names import by_preset, check_meant

__all__ = ["by_preset"]


def test_every_setting_suggested_is_one_of_some_preset(by_preset: dict[str, set[str]]) -> None:
    everything = set().union(*by_preset.values())
    assert [name for names in SETTINGS.values() for name in names if name not in everything] == []


def test_every_flag_suggested_is_a_flag() -> None:
    flags = [spelling for flag in (*RUNS, PLAIN, DEBUG) for spelling in flag.spellings]
    assert [flag for names in FLAGS.values() for flag in names if flag not in flags] == []
    for name in SETTINGS:
        assert all(each.partition(" ")[0] in flags for each in familiar_flags(f"--{name}") or ())


def test_every_command_and_class_suggested_exists() -> None:
    assert {name for names in COMMANDS.values() for name in names} <= OWN_COMMANDS.keys()
    assert {name for names in CLASSES.values() for name in names} <= set(coach_rl.__all__)
    assert not set(CLASSES) & set(coach_rl.__all__)


def test_name_from_elsewhere_means_what_a_preset_of_hac_has(by_preset) -> None:
    check_meant(by_preset["Pendulum_HAC"], "Pendulum_HAC", "gamma", ["discount"])
