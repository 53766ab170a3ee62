"""A mapping that never changes, for parameters whose keys are the user's own."""

from collections.abc import Hashable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

K = TypeVar("K", bound=Hashable)
Arguments = Mapping[str, Any]
"""Keyword arguments of something that a preset names."""


class FrozenMapping(Mapping[K, Any]):
    """A dict without writers.

    It keeps a copy of what it is given: mappings inside become `FrozenMapping`s, and lists and
    arrays are handed out as copies, so that nothing that is done to them reaches the original.

    Args:
        content: A mapping, or pairs of key and value.
    """

    def __init__(self, content: Mapping[K, object] | Iterable[tuple[K, object]] = ()) -> None:
        self._content = {key: _owned(value) for key, value in dict(content).items()}

    def __getitem__(self, key: K) -> Any:
        return _owned(self._content[key])

    def __iter__(self) -> Iterator[K]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __hash__(self) -> int:
        return hash(frozenset((key, frozen(value)) for key, value in self._content.items()))

    def __repr__(self) -> str:
        return repr(self._content)


def frozen(value: object) -> object:
    """The same value with lists and arrays in it as tuples, mappings as `FrozenMapping`s."""
    match value:
        case np.ndarray():
            return frozen(value.tolist())
        case list() | tuple():
            return tuple(frozen(part) for part in value)
        case Mapping():
            return FrozenMapping({key: frozen(part) for key, part in value.items()})
    return value


def thawed(value: object) -> Any:
    """The same value with mappings in it as plain dicts, for code that expects those."""
    match value:
        case Mapping():
            return {key: thawed(part) for key, part in value.items()}
        case list():
            return [thawed(part) for part in value]
        case tuple() if type(value) is tuple:
            return tuple(thawed(part) for part in value)
    return value


def _owned(value: object) -> object:
    """The value, or a copy where somebody else could write to it."""
    match value:
        case np.ndarray() | set():
            return value.copy()
        case list():
            return [_owned(part) for part in value]
        case tuple() if type(value) is tuple:
            return tuple(_owned(part) for part in value)
        case Mapping() if not isinstance(value, FrozenMapping):
            return FrozenMapping(value)
    return value
