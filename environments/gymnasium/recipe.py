"""Gymnasium environments by a level's name, as picklable recipes."""

import importlib
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, TypeVar, get_origin, get_type_hints

import gymnasium
from gymnasium.envs.registration import EnvSpec

from coach_rl.configuration.own_classes import classes_meant
from coach_rl.core.errors import CoachError, ConfigurationError, UnknownNameError, how_to_install
from coach_rl.core.shown_text import shown_error, shown_level, shown_value
from coach_rl.core.typed_values import FrozenMapping, thawed
from coach_rl.environments.faults import raised_at

T = TypeVar("T")

EXTRAS = {
    "Box2D": "box2d",
    "gymnasium_robotics": "robotics",
    "mpe2": "pettingzoo",
    "ogbench": "ogbench",
    "pettingzoo": "pettingzoo",
    "popgym": "popgym",
}
"""Modules that come with an extra of ours."""

_ARGUMENTS = "its arguments are given by -cp \"environment.kwargs={'size': 3}\""
_ENV = "gymnasium.Env"
_OTHER_ADAPTER = " (PettingZoo's are described by PettingZooParameters)"

Env = gymnasium.Env[Any, Any]
Wrapper = str | tuple[str, Mapping[str, object]]
"""`module:Class`, or that and the class's keyword arguments."""


REGISTERED_BY = {"ALE": "ale_py"}
"""Packages that register the ids of a namespace, such as `ALE/Pong-v5`."""


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """A picklable description of one environment."""

    level: str
    """A registered id, `module:Id-v0` or `module:Class`."""
    kwargs: Mapping[str, object] = FrozenMapping[str]()
    """Keyword arguments of the environment."""
    wrappers: tuple[Wrapper, ...] = ()
    """Applied in this order, the last is outermost."""
    max_episode_steps: int | None = None
    """Time limit; None keeps the registered one (a class has none); -1: never."""
    spec: EnvSpec | None = None
    """Registered spec of the level; None for a class."""

    def make(self) -> Env:
        """A new environment.

        Raises:
            ConfigurationError: It cannot be made with these arguments, or needs a missing package.
        """
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.kwargs.items())
        given = f" with {arguments}" if arguments else ""
        env = guarded(self._bare, what=f"'{shown_level(self.level)}'{given}")
        if not isinstance(env, gymnasium.Env):
            raise ConfigurationError(
                f"'{shown_level(self.level)}' made a {type(env).__name__}, not a gymnasium.Env; "
                f"name a class of environments or a function that returns one{_OTHER_ADAPTER}"
            )
        made: Env = wrapped(env, self.wrappers)
        return made

    def _bare(self) -> object:
        if self.spec is not None:
            _import_entry_point(self.spec)
            return gymnasium.make(
                self.spec,
                max_episode_steps=self.max_episode_steps,
                disable_env_checker=True,
                **thawed(self.kwargs),
            )
        env = entry_point(self.level, kind="environment")(**thawed(self.kwargs))
        if self.max_episode_steps in (None, -1):
            return env
        return gymnasium.wrappers.TimeLimit(env, self.max_episode_steps)


def resolved(
    level: str,
    *,
    kwargs: Mapping[str, object],
    wrappers: tuple[Wrapper, ...],
    max_episode_steps: int | None,
) -> Recipe:
    """The recipe for a level, with level and wrappers resolved and nothing built.

    Raises:
        UnknownNameError: No such id, module, class or wrapper.
        ConfigurationError: The module or a package it needs cannot be imported, or the named object
            is not declared to make environments.
    """
    for wrapper in wrappers:
        entry_point(wrapper_name(wrapper), kind="wrapper")
    spec = registered(level)
    if spec is None:
        entry_point(level, kind="environment")
    return Recipe(
        level=level,
        kwargs=kwargs,
        wrappers=wrappers,
        max_episode_steps=max_episode_steps,
        spec=spec,
    )


def wrapper_name(wrapper: Wrapper) -> str:
    """The `module:Class` of a wrapper."""
    return wrapper if isinstance(wrapper, str) else wrapper[0]


def registered(level: str) -> EnvSpec | None:
    """The registered spec of a level; None if it is a `module:Class`.

    Raises:
        UnknownNameError: It is neither.
    """
    module_name, colon, name = level.rpartition(":")
    if not colon:
        return _known(level)
    if named_in(module_name, name, kind="environment") is not None:
        return None
    if name in gymnasium.registry:
        return gymnasium.spec(name)
    module = sys.modules[module_name]
    meant = classes_meant(level)
    hint = _ARGUMENTS if "(" in level else ""
    offers = _offers(module_name, module)
    raise UnknownNameError("environment", shown_level(level), offers, hint, near=meant)


def how_to_name(level: str) -> str:
    """Advice on naming an environment without an id or a short name."""
    namespace, slash, _ = level.partition("/")
    package = REGISTERED_BY.get(namespace) if slash else None
    if package is not None:
        return f"the package {package} registers it: install it and write {package}:{level}"
    return (
        "write module:Class for an environment of your own, and module:Id-v0 for one that another "
        "package registers, such as gymnasium_robotics:FetchReach-v4"
    )


def ids_in(text: str) -> list[str]:
    """The registered ids that stand in a text, such as `gym.make('CartPole-v1')`."""
    return [word for word in re.split(r"[^\w./-]+", text) if word in gymnasium.registry]


def entry_point(
    name: str,
    *,
    kind: str,
    makes: tuple[type, ...] = (gymnasium.Env,),
    unannotated: tuple[str, ...] = (),
) -> Callable[..., Any]:
    """The object that `module:Class` names, if it is declared to make environments.

    A name may come from another person's run folder, together with the arguments of the call. So
    only a class derived from an allowed type, or a function annotated to return one, is called.

    Args:
        name: `module:Class` or `module:function`.
        kind: Its kind, for messages.
        makes: Allowed return types.
        unannotated: Names of functions that need no annotation.

    Raises:
        UnknownNameError: The module has nothing callable of that name.
        ConfigurationError: The name has no colon, the module cannot be imported, or what it names
            makes something else, or has no annotation.
    """
    module_name, colon, attribute = name.rpartition(":")
    if not colon:
        meant = classes_meant(name) or ["gymnasium.wrappers:FlattenObservation"]
        raise ConfigurationError(f"{kind} '{name}' must be named as module:Class, e.g. {meant[0]}")
    found = named_in(module_name, attribute, kind=kind)
    if not callable(found):
        package = module_name.partition(".")[0]
        offers = [
            shown_level(f"{module_name}:{other}")
            for other, value in vars(sys.modules[module_name]).items()
            if callable(value) and not other.startswith("_") and _package(value) == package
        ]
        meant = classes_meant(name)
        hint = _ARGUMENTS if "(" in name else ""
        raise UnknownNameError(kind, shown_level(name), offers, hint, near=meant)
    is_function = isinstance(found, FunctionType)
    made = _returned(found) if is_function else found
    if not (isinstance(made, type) and issubclass(made, makes)) and not (
        is_function and attribute in unannotated
    ):
        wanted = _public_name(makes[0])
        raise ConfigurationError(
            f"{kind} '{shown_level(name)}' is not annotated as making a {wanted}, and is not "
            f"called; name a class derived from {wanted}, or a function whose return type is "
            f"annotated as one: def {attribute}(...) -> {wanted}"
            f"{_OTHER_ADAPTER if wanted == _ENV else ''}"
        )
    return found  # type: ignore[no-any-return]  # the return type of a callable() is unknown


def imported(module_name: str, *, kind: str, name: str = "") -> ModuleType:
    """The module of that name.

    Args:
        module_name: Its name.
        kind: The kind of what is wanted of it, for messages.
        name: The name of that in it, for messages; empty: none is known.

    Raises:
        ConfigurationError: It, or something it needs, is not installed, or its code fails.
    """
    if not module_name:
        meant = classes_meant(name) or ["my_module:MyEnv"]
        raise ConfigurationError(f"{kind} ':{name}' lacks its module; write {meant[0]}")
    if module_name.endswith(".py"):
        meant = [
            *classes_meant(f"{module_name}:{name}"),
            *classes_meant(module_name),
            f"{Path(module_name).stem}:Class",
        ]
        raise ConfigurationError(
            f"the {kind}'s module '{module_name}' is named without .py; write {meant[0]}"
        )
    with _import_errors(f"the {kind}'s module '{module_name}'", f"{module_name}:{name}"):
        return importlib.import_module(module_name)


def named_in(module_name: str, name: str, *, kind: str) -> Any:
    """The object that a module has under a name, and may import only now; None without one.

    Raises:
        ConfigurationError: See `imported`.
    """
    module = imported(module_name, kind=kind, name=name)
    with _import_errors(f"the {kind} '{shown_level(f'{module_name}:{name}')}'"):
        return getattr(module, name, None)


@contextmanager
def _import_errors(what: str, name: str = "") -> Iterator[None]:
    """Translate the errors of an import; see `imported`.

    Args:
        what: What is imported, for the message.
        name: `module:Class`, of which another may be meant; empty: none is.
    """
    try:
        yield
    except (CoachError, KeyboardInterrupt):
        raise
    except ImportError as error:
        meant = [each for each in (*classes_meant(name), *ids_in(name)) if each != name]
        advice = (
            f"; did you mean '{meant[0]}'?"
            if meant
            else "; install the package, start coach in the folder of the file (with --trust "
            "MODULE for a run that was made elsewhere), or put the file beside the preset"
        )
        reason = _lacking(error) or f"{shown_value(error, form=str)}{advice}"
        raise ConfigurationError(f"{what} cannot be imported: {reason}") from error
    except BaseException as error:
        raise ConfigurationError(
            f"{what} cannot be imported: {shown_error(error)} ({raised_at(error)})"
        ) from error


def wrapped(
    env: object, wrappers: tuple[Wrapper, ...], *, makes: tuple[type, ...] = (gymnasium.Env,)
) -> Any:
    """The environment inside its wrappers, the last one outermost; see `entry_point`."""
    for wrapper in wrappers:
        name = wrapper_name(wrapper)
        kwargs = {} if isinstance(wrapper, str) else thawed(wrapper[1])
        apply = entry_point(name, kind="wrapper", makes=makes)
        env = guarded(apply, env, what=f"wrapper '{name}'", **kwargs)
    return env


def guarded(make: Callable[..., T], *arguments: object, what: str, **kwargs: object) -> T:
    """The result of `make`, with its errors translated.

    Raises:
        ConfigurationError: It raised something, or a package is missing.
    """
    try:
        return make(*arguments, **kwargs)
    except (CoachError, KeyboardInterrupt):
        raise
    except (gymnasium.error.DependencyNotInstalled, ImportError) as error:
        reason = _lacking(error) or f"a package is missing: {shown_value(error, form=str)}"
        raise ConfigurationError(f"{what} cannot be made: {reason}") from error
    except BaseException as error:
        advice = "check its kwargs, such as -cp \"environment.kwargs={'size': 3}\""
        if isinstance(error, TypeError) and "render_mode" in f"{what} {shown_error(error)}":
            advice = (
                "to be filmed or played, it takes render_mode and has render(); else film nothing"
            )
        raise ConfigurationError(
            f"{what} cannot be made: {shown_error(error)} ({raised_at(error)}); {advice}"
        ) from error


def _public_name(kind: type) -> str:
    """The shortest path by which a class can be imported, e.g. gymnasium.Env."""
    parts = kind.__module__.split(".")
    paths = (".".join(parts[:length]) for length in range(1, len(parts) + 1))
    return next(
        f"{path}.{kind.__name__}"
        for path in paths
        if getattr(sys.modules.get(path), kind.__name__, None) is kind
    )


def _returned(function: FunctionType) -> object:
    """The class that a function is annotated to return; None if there is none."""
    try:
        returned = get_type_hints(function).get("return")
    except (AttributeError, NameError, SyntaxError, TypeError):
        return None
    return get_origin(returned) or returned


def _known(level: str) -> EnvSpec:
    if level not in gymnasium.registry:
        raise UnknownNameError(
            "Gymnasium environment",
            level,
            gymnasium.registry,
            how_to_name(level),
            near=classes_meant(level) or ids_in(level),
        )
    return gymnasium.spec(level)


def _import_entry_point(spec: EnvSpec) -> None:
    """Import the environment's module without the warnings of SWIG's generated code.

    Box2D raises them while its types are made, and the interpreter crashes if they are errors.
    """
    if isinstance(spec.entry_point, str):
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "builtin type swig", DeprecationWarning)
            importlib.import_module(spec.entry_point.partition(":")[0])


def _lacking(error: BaseException) -> str:
    """The missing module that caused an error, and how to install it; empty if no extra has it."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ModuleNotFoundError) and cause.name is not None:
            root = cause.name.partition(".")[0]
            is_extra = root in EXTRAS
            return f"{root} is not installed; {how_to_install(EXTRAS[root])}" if is_extra else ""
        cause = cause.__cause__
    return ""


def _offers(module_name: str, module: object) -> list[str]:
    """Environments of a module's package: classes in the module, and registered ids."""
    classes = [
        name
        for name, value in vars(module).items()
        if isinstance(value, type) and issubclass(value, gymnasium.Env)
    ]
    known = {name: getattr(module, name) for name in classes}
    known |= {name: spec.entry_point for name, spec in gymnasium.registry.items()}
    package = module_name.partition(".")[0]
    names = [name for name, made in known.items() if _package(made) == package]
    return [shown_level(f"{module_name}:{name}") for name in names]


def _package(thing: object) -> str:
    """The top-level package that a class or function, or what `module:Class` names, is in."""
    module = thing if isinstance(thing, str) else getattr(thing, "__module__", None) or ""
    return module.partition(":")[0].partition(".")[0]
