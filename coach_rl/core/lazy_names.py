"""Public names: imported when they are first used (PEP 562).

    if TYPE_CHECKING:
        from coach_rl.agents.ppo_agent import PPOAgent, PPOAgentParameters
    else:
        __getattr__, __dir__ = lazy_names(__name__)

    __all__ = ["PPOAgent", "PPOAgentParameters"]

Type checkers and editors read the imports. The running program reads them too, at the first use of
a name, so there is one list; importing the package alone imports nothing, least of all torch.

A name that `coach_rl` itself offers is an interface: the folders of runs hold `coach_rl:NAME`, so
modules may move. See `public_name`. Beside those of the core it offers the names of extensions,
which their tables list (see `configuration.extensions`); type checkers read all of them in
`__init__.pyi`.
"""

import ast
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache

from coach_rl.core.errors import near_names


def lazy_names(
    package: str,
    more: Callable[[], Mapping[str, tuple[str, str]]] | None = None,
    familiar: Callable[[], Mapping[str, Sequence[str]]] = dict,
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package with its imports under `TYPE_CHECKING`.

    Args:
        package: The package's `__name__`.
        more: Returns further names, with their module and name there. The package has no `__all__`
            of its own then: all names are in it.
        familiar: Returns the names that an unknown one may stand for.
    """
    module = sys.modules[package]

    @cache
    def origins() -> dict[str, tuple[str, str]]:
        own = imports_for_type_checkers(_source(package))
        return own if more is None else {**own, **more()}

    def get_attribute(name: str) -> object:
        if name == "__all__" and more is not None:
            own = {"__version__"} & vars(module).keys()
            setattr(module, name, sorted({*origins(), *own}, key=_kind_and_name))
            return getattr(module, name)
        if name.startswith("_"):
            raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)
        if name not in origins():
            raise unknown_name(package, name, familiar())
        origin, name_there = origins()[name]
        try:
            thing = getattr(importlib.import_module(origin), name_there)
        except AttributeError as error:  # which Python would take for a lack of the name
            raise ImportError(
                f"cannot import name {name!r} from {package!r}: importing {origin} raised "
                f"AttributeError: {error}",
                name=name,
            ) from error
        setattr(module, name, thing)  # later lookups bypass this function
        return thing

    def names() -> list[str]:
        return sorted({*vars(module), *origins()})

    return get_attribute, names


def _kind_and_name(name: str) -> tuple[int, str]:
    """Constants come first, then classes, then functions; each in alphabetical order."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def imports_for_type_checkers(source: str) -> dict[str, tuple[str, str]]:
    """Names that a source imports under `if TYPE_CHECKING:`, with their module and name there."""
    return {
        alias.asname or alias.name: (statement.module or "", alias.name)
        for block in ast.parse(source).body
        if isinstance(block, ast.If)
        and isinstance(block.test, ast.Name)
        and block.test.id == "TYPE_CHECKING"
        for statement in block.body
        if isinstance(statement, ast.ImportFrom)
        for alias in statement.names
    }


def _source(package: str) -> str:
    spec = sys.modules[package].__spec__
    read = getattr(spec.loader if spec else None, "get_source", None)
    source = read(package) if read else None
    if source is None:
        raise ImportError(f"the source of {package} cannot be read, which names what it offers")
    return str(source)


PACKAGE = "coach_rl"
"""The package whose public names are the interface."""


def public_name(thing: Callable[..., object]) -> str | None:
    """`coach_rl:NAME` of a class or function that `coach_rl` offers; None for any other."""
    name = thing.__qualname__
    package = sys.modules[PACKAGE]
    if is_below_package(thing.__module__) and name in package.__all__:
        return f"{PACKAGE}:{name}" if getattr(package, name) is thing else None
    return None


def is_below_package(module: str) -> bool:
    """True if a module is one of `coach_rl`'s."""
    return module.startswith(f"{PACKAGE}.")


def unknown_name(module: str, name: str, familiar: Mapping[str, Sequence[str]]) -> AttributeError:
    """The error about a name that a module does not have, with those that may have been meant."""
    near = familiar.get(name) or near_names(name, getattr(sys.modules[module], "__all__", ()))
    instead = f"; did you mean {' or '.join(near)}?" if near else ""
    return AttributeError(f"module {module!r} has no attribute {name!r}{instead}", name=name)
