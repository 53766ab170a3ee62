"""The goal worlds as pytest parameters; those of absent packages are skipped."""

import importlib.util

import pytest

from coach_rl.environments.goal_worlds import GOAL_WORLDS

PACKAGES = {"ogbench": ("ogbench", "ogbench"), "robotics": ("gymnasium_robotics", "robotics")}
"""Module and extra by the beginning of a level."""


def every_goal_world():
    """Every level, sorted."""
    return [pytest.param(level, marks=_marks(level)) for level in sorted(GOAL_WORLDS)]


def _marks(level):
    module, extra = PACKAGES.get(level.partition("_")[0], (None, None))
    if module is None or importlib.util.find_spec(module) is not None:
        return []
    return [pytest.mark.skip(reason=f"{module} is not installed; it comes with the extra {extra}")]
