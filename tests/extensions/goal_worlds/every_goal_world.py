"""The goal worlds, built, and as pytest parameters: slow where another differs in its map alone.

Those of absent packages are skipped.
"""

import importlib.util

import pytest

from coach_rl.environments import parameters
from coach_rl.environments.goal_worlds import GOAL_WORLDS

PACKAGES = {"ogbench": ("ogbench", "ogbench"), "robotics": ("gymnasium_robotics", "robotics")}
"""Module and extra by the beginning of a level."""
ALIKE = {
    *(f"ogbench_{body}_maze_{size}" for body in ("ant", "point") for size in ("large", "giant")),
    *(f"robotics_{body}_maze_{size}" for body in ("ant", "point") for size in ("medium", "large")),
    *("ant_key_chest", "ant_push_sparse", "ant_push_stochastic", "ant_fall_sparse"),
    *(f"ant_maze_{name}" for name in ("complex", "pi", "s", "u24", "w")),
    *("ant_four_rooms_sparse", "point_maze_large", "point_maze_medium"),
}
"""Levels of which a sibling runs in every test."""


def every_goal_world():
    """Every level, sorted."""
    return [pytest.param(level, marks=_marks(level)) for level in sorted(GOAL_WORLDS)]


def _marks(level):
    marks = [pytest.mark.slow] if level in ALIKE else []
    module, extra = PACKAGES.get(level.partition("_")[0], (None, None))
    if module is not None and importlib.util.find_spec(module) is None:
        reason = f"{module} is not installed; it comes with the extra {extra}"
        marks.append(pytest.mark.skip(reason=reason))
    return marks


def build(level, rows=1, **kwargs):
    """A batch of a world whose task has these settings."""
    return parameters(level, threads=1, kwargs=kwargs).build(num_envs=rows)
