"""Names of the tasks of the DeepMind Control Suite (Tassa et al. 2018, arXiv:1801.00690)."""

import importlib
import os
import warnings
from typing import Any

from coach_rl.core.errors import (
    ConfigurationError,
    UnknownNameError,
    how_to_install,
    in_one_line,
)

PREFIX = "dm_control:"
"""May stand before the name of a task, and does where it is one name among other environments'."""
BENCHMARK_TASKS = (
    "acrobot-swingup", "acrobot-swingup_sparse", "ball_in_cup-catch", "cartpole-balance",
    "cartpole-balance_sparse", "cartpole-swingup", "cartpole-swingup_sparse", "cheetah-run",
    "finger-spin", "finger-turn_easy", "finger-turn_hard", "fish-swim", "fish-upright",
    "hopper-hop", "hopper-stand", "humanoid-run", "humanoid-stand", "humanoid-walk",
    "manipulator-bring_ball", "pendulum-swingup", "point_mass-easy", "reacher-easy",
    "reacher-hard", "swimmer-swimmer15", "swimmer-swimmer6", "walker-run", "walker-stand",
    "walker-walk",
)  # fmt: skip
"""The 28 benchmark tasks of the suite."""
REPEATS = {"cartpole": 8, "finger": 2, "walker": 2}
"""Steps that an action lasts where pictures are seen, by domain (Hafner et al. 2019,
arXiv:1811.04551); 4 in others."""


def short_name(level: str) -> str:
    """The name of a task without its prefix."""
    return level.removeprefix(PREFIX)


def usual_repeat(level: str) -> int:
    """Steps that an action of a task lasts where pictures are seen."""
    return REPEATS.get(short_name(level).partition("-")[0], 4)


def require_task(level: str) -> None:
    """Raise `UnknownNameError` for a task that the suite does not have.

    Raises:
        ConfigurationError: dm_control is missing, or cannot be imported.
    """
    if short_name(level) in BENCHMARK_TASKS:  # whose names need no package
        return
    known = ["-".join(each) for each in load_suite().ALL_TASKS]
    if short_name(level) not in known:
        raise UnknownNameError("task of dm_control", level, known)


def load_suite() -> Any:
    """The module `dm_control.suite`.

    Raises:
        ConfigurationError: It is missing, or its renderer cannot be loaded.
    """
    try:
        with warnings.catch_warnings(action="ignore"):  # of GLFW without a display
            return importlib.import_module("dm_control.suite")
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"tasks of dm_control need {error.name}, which is not installed; "
            f"{how_to_install('dm_control')}"
        ) from error
    except Exception as error:  # each OpenGL library fails in its own way
        chosen = os.environ.get("MUJOCO_GL")
        raise ConfigurationError(
            f"dm_control cannot be imported with MUJOCO_GL={chosen}: {in_one_line(error)}; unset "
            "MUJOCO_GL, or set it to egl or osmesa"
        ) from error
