"""Environments by the name of a task.

environment = make("half_cheetah", num_envs=8)
description = parameters("point_mass", max_episode_steps=100)       # what a preset keeps
"""

import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable

import gymnasium

from coach_rl.configuration.extensions import (
    Extension,
    installed_extensions,
    own_extensions,
)
from coach_rl.configuration.own_classes import classes_meant
from coach_rl.core.errors import ParameterError, UnknownNameError, suggestion
from coach_rl.core.interfaces import Environment, EnvironmentParameters
from coach_rl.core.shown_text import name_of_class
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.gymnasium.recipe import how_to_name, ids_in
from coach_rl.environments.mujoco import TASKS, MujocoParameters
from coach_rl.environments.toy import (
    BitFlipParameters,
    CablesParameters,
    ChainParameters,
    GatesParameters,
    GoalPointMassParameters,
    OneStepParameters,
    PlatformParameters,
    PointMassParameters,
    SteadyPayParameters,
    TMazeParameters,
)

TOYS: dict[str, tuple[type[EnvironmentParameters], dict[str, object]]] = {
    "bit_flip": (BitFlipParameters, {}),
    "cables_8": (CablesParameters, {}),
    "chain": (ChainParameters, {}),
    "gates": (GatesParameters, {}),
    "goal_point_mass": (GoalPointMassParameters, {}),
    "one_step": (OneStepParameters, {}),
    "one_step_continuous": (OneStepParameters, {"continuous": True}),
    "platform": (PlatformParameters, {}),
    "point_mass": (PointMassParameters, {}),
    "steady_pay": (SteadyPayParameters, {}),
    "t_maze_10": (TMazeParameters, {"length": 10}),
    "t_maze_50": (TMazeParameters, {"length": 50}),
}
"""The toy worlds by level: their parameters, and the fields that the level sets."""
_NEEDING_JAX = ("phys2d/", "tabular/")
"""Beginnings of registered ids that no message suggests, as they need a package of their own."""


def make(level: str, *, num_envs: int = 1, **kwargs: object) -> Environment:
    """A new environment; its seed is given to `reset`.

    Args:
        level: See `parameters`.
        num_envs: How many rows it has.
        kwargs: Fields of its parameters.

    Raises:
        ConfigurationError: The task or a field does not exist, or has a wrong value.
    """
    return parameters(level, **kwargs).build(num_envs=num_envs)


def parameters(level: str, **kwargs: object) -> EnvironmentParameters:
    """The description of the environment of a task.

    Args:
        level: A MuJoCo task by short name or Gymnasium id (`half_cheetah`, `HalfCheetah-v5`), a
            toy world (`point_mass`), a task of an extension (`goal_pendulum`), any other
            registered Gymnasium id (`CartPole-v1`), or `module:Class` or `module:Id-v0` (see
            `GymnasiumParameters`).
        kwargs: Fields of its parameters, e.g. `max_episode_steps`.

    Raises:
        UnknownNameError: There is no such task.
        ParameterError: Its parameters have no such field, or it has a wrong value.
    """
    if not isinstance(level, str):
        raise ParameterError(f"a task must be a name, got {level!r}{name_of_class(level)}")
    if level in TASKS:
        return _filled(MujocoParameters, level, {"level": level}, kwargs)
    if level in TOYS:
        toy, fixed = TOYS[level]
        return _filled(toy, level, fixed, kwargs)
    if level in (ours := _tasks(own_extensions())):
        return _of_extension(ours[level], level, kwargs)
    if ":" in level or level in gymnasium.registry:
        return _filled(GymnasiumParameters, level, {"level": level}, kwargs)
    if level in (others := _tasks(installed_extensions()[0])):
        return _of_extension(others[level], level, kwargs)
    meant = classes_meant(level) or ids_in(level) or _named_alike(level)
    raise UnknownNameError("task", level, level_names(), how_to_name(level), near=meant)


def level_names() -> list[str]:
    """Every task that `make` knows by name, ours and those of extensions first."""
    added = [*_tasks(own_extensions()), *_tasks(installed_extensions()[0])]
    named = list(dict.fromkeys([*TASKS, *TOYS, *added]))
    unnamed = (name for name in gymnasium.registry if not name.startswith(_NEEDING_JAX))
    return [*named, *(name for name in unnamed if name not in named)]


def _named_alike(level: str) -> list[str]:
    """The tasks of extensions whose names an old id has in another spelling, as `Pong-v4`."""
    plain = re.sub(r".*/|(NoFrameskip|Deterministic)?(-ram)?-v\d+$", "", level).lower()
    return [name for name in _tasks(own_extensions()) if name.replace("_", "") == plain]


def _tasks(extensions: Iterable[Extension]) -> dict[str, str]:
    """The tasks of extensions, with the places of their parameters."""
    return {
        name: place
        for extension in extensions
        for place, names in extension.tasks.items()
        for name in names
    }


def _of_extension(place: str, level: str, kwargs: dict[str, object]) -> EnvironmentParameters:
    """The parameters of an extension's task; its name is one of their fields, or they need none."""
    kind = pkgutil.resolve_name(place)
    is_named = "level" in inspect.signature(kind).parameters
    return _filled(kind, level, {"level": level} if is_named else {}, kwargs)


def _filled(
    kind: Callable[..., EnvironmentParameters],
    level: str,
    fixed: dict[str, object],
    kwargs: dict[str, object],
) -> EnvironmentParameters:
    """The parameters with these fields; ParameterError names the known ones."""
    fields = [name for name in inspect.signature(kind).parameters if name not in fixed]
    for name in kwargs:
        if name not in fields:
            raise ParameterError(
                f"'{level}' has no parameter '{name}'{suggestion(name, fields)} "
                f"(its parameters are the fields of {kind.__name__})"
            )
    return kind(**fixed, **kwargs)
