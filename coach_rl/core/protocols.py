"""Tests of whether the objects of a class are what a protocol asks for.

belongs(PPOAgentParameters, AgentParameters)                        # True
belongs(ObservationNormalizationFilter, InputFilterParameters)      # False, though both have build
"""

import inspect
from typing import Any, get_type_hints

from typeguard import ForwardRefPolicy, TypeCheckError, check_type


def belongs(kind: type[object], wanted: type[object]) -> bool:
    """Return whether objects of a class satisfy another class or a protocol.

    Of a protocol, every member has to be there with a signature that fits, and `build` must return
    what is asked for: a filter of one observation is no filter of them all.
    """
    if not getattr(wanted, "_is_protocol", False):
        return issubclass(kind, wanted)
    return _has_members(kind, wanted) and builds(kind, wanted)


def builds(kind: type[object], protocol: type[object]) -> bool:
    """Return whether `build` returns what the protocol's does; methods are compared by name.

    A `build` that doesn't say what it returns is taken at its word.
    """
    built, asked_for = (_return_type(getattr(each, "build", None)) for each in (kind, protocol))
    if not (inspect.isclass(built) and inspect.isclass(asked_for)):
        return True
    if not getattr(asked_for, "_is_protocol", False):
        return issubclass(built, asked_for)
    methods = _members_of(asked_for).items()
    return all(hasattr(built, name) for name, member in methods if inspect.isfunction(member))


def _members_of(protocol: type[object]) -> dict[str, object]:
    """Return the members that a protocol requires, by name."""
    return {
        name: member
        for each in protocol.__mro__
        if getattr(each, "_is_protocol", False)
        for name, member in vars(each).items()
        if name == "__call__" or not name.startswith("_")
    }


def _has_members(kind: type[object], protocol: type[object]) -> bool:
    # Fields without a default are in annotations alone, which `vars` doesn't hold from 3.14 on.
    own = {name for each in kind.__mro__ for name in (*vars(each), *inspect.get_annotations(each))}
    if not set(_members_of(protocol)) <= own:
        return False
    try:
        check_type(kind, type[protocol], forward_ref_policy=ForwardRefPolicy.IGNORE)
    except TypeCheckError:
        return False
    return True


def _return_type(function: object) -> object:
    try:
        declared = get_type_hints(function).get("return")
    except (TypeError, NameError):  # no function, or names that only type checkers import
        return None
    return None if declared in (Any, object) else declared
