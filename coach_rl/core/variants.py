"""Variants: classes by kind of space, those of an agent itself and those of extensions.

    own = {"Discrete": DQNLearner}
    kind = variant_for("DQNAgentParameters", space, own, claim="this agent cannot act in")
    modes = named_variants("update_mode")              # by names that are no kinds of space

An extension lists its own in its table (see `configuration.extensions`). Kinds
that the engine serves itself stay as they are; a variant is imported when its kind is met.
"""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from coach_rl.core.errors import SpaceError

variant_tables: list[Callable[[str], Mapping[str, str]]] = []
"""Functions from a name to the places `module:NAME` of its variants by kind of space; what runs the
engine adds one that reads the tables of extensions."""


def variant_for(name: str, space: object, own: Mapping[str, Any], *, claim: str) -> Any:
    """The class or function for a kind of space: one that is given, or an extension's variant.

    Of several classes that a space derives from, the nearest that is served counts.

    Args:
        name: What has variants, such as the public name of an agent's parameters.
        space: The space, of Gymnasium or of an extension.
        own: Classes or functions that need no extension, by the name of the kind.
        claim: The beginning of the message about a space that nothing serves.

    Raises:
        SpaceError: Neither serves the space.
    """
    kinds = [kind_of(each) for each in type(space).__mro__]
    if kinds[0] in own:  # no table is read
        return own[kinds[0]]
    places = _places(name)
    for kind in kinds:
        if kind in places:
            return _imported(places[kind])
        if kind in own:
            return own[kind]
    shown = " ".join(str(space).split())  # which may have several lines
    known = ", ".join(sorted({*own, *places})) or "no other kind that needs a variant"
    raise SpaceError(
        f"{claim} {shown}; there is {known}. Map it to another space by a filter, or install an "
        f"extension with a variant of {name} for {kinds[0]}"
    )


def named_variants(name: str) -> dict[str, Any]:
    """The classes or functions of extensions by name, for what has variants by names of its own.

    Args:
        name: What has variants, such as a parameter.
    """
    return {each: _imported(place) for each, place in _places(name).items()}


def _places(name: str) -> dict[str, str]:
    """The places of variants in all tables."""
    return {each: place for table in variant_tables for each, place in table(name).items()}


def _imported(place: str) -> Any:
    """The class or function at `module:NAME`."""
    module, _, attribute = place.partition(":")
    return getattr(importlib.import_module(module), attribute)


def kind_of(space_class: type) -> str:
    """The name of a kind of space: Gymnasium's by its class, others as `module:Class`."""
    is_known = space_class.__module__.startswith("gymnasium.spaces")
    return space_class.__name__ if is_known else f"{space_class.__module__}:{space_class.__name__}"
