"""What levels of several agents may name: nothing is called that doesn't say what it makes."""

import sys

import pytest

from coach_rl.core.errors import ConfigurationError
from coach_rl.environments.pettingzoo import PettingZooParameters
from tests.environments.test_entry_points import (
    LATE,
    LAZY,
    check_says_what_is_missing,
    module_of_mine,
)

__all__ = ["module_of_mine"]


def test_parallel_environment_needs_the_annotation(tmp_path):
    pytest.importorskip("pettingzoo")
    told = tmp_path / "told"
    for name, kwargs in (
        ("os:system", {"command": f"touch {told}"}),
        ("makers_of_mine:unsaid", {"path": str(told)}),
    ):
        with pytest.raises(ConfigurationError):
            PettingZooParameters(level=name, kwargs=kwargs).build(num_envs=1)
    with pytest.raises(ConfigurationError):
        PettingZooParameters(level="little_parallel:Hunt", wrappers=("os:system",)).build(
            num_envs=1
        )
    assert not told.exists()


def test_module_whose_parallel_env_is_imported_late_error_names_what_is_missing(tmp_path):
    pytest.importorskip("pettingzoo")
    (tmp_path / "lazy_of_mine.py").write_text(LAZY)
    with pytest.raises(ConfigurationError, match="'lazy_of_mine:parallel_env' cannot be imported"):
        PettingZooParameters(level="lazy_of_mine").build(num_envs=1)
    sys.modules.pop("lazy_of_mine")


@pytest.mark.parametrize(("name", "reason"), LATE)
def test_agents_that_are_imported_late_error_names_what_is_missing(tmp_path, name, reason):
    (tmp_path / "lazy_of_mine.py").write_text(LAZY)
    level = f"lazy_of_mine:{name}"
    described = PettingZooParameters(level=level)
    check_says_what_is_missing(described, f"environment '{level}'", reason)
