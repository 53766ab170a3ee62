"""Warnings name the line of the program that uses the package."""

import warnings
from contextlib import contextmanager
from pathlib import Path

import coach_rl
from coach_rl.core.errors import CoachWarning, warn


def test_warning_is_located_where_the_package_is_called(tmp_path: Path) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        coach_rl.train("PPO", "one_step", steps=40, folder=tmp_path)
    assert caught
    assert {each.category for each in caught} == {CoachWarning}
    assert {each.filename for each in caught} == {__file__}


def test_warning_behind_a_library_is_located_outside_of_the_package() -> None:
    names = {"__name__": "coach_rl.made_up", "contextmanager": contextmanager, "warn": warn}
    source = """
@contextmanager
def opened():
    warn("seen")
    yield

def use():
    with opened():
        pass
"""
    exec(source, names)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        names["use"]()
    (one,) = caught
    assert one.filename == __file__
