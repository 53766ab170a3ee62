"""A mapping that never changes, for parameters that name their own keys."""

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, TypeVar

import numpy as np

K = TypeVar("K", bound=Hashable)


class FrozenMapping(Mapping[K, Any]):
    """A hashable dict without writers; lists and arrays inside become tuples.

    Args:
        content: A mapping, or pairs of key and value.
    """

    def __init__(self, content: Any = ()) -> None:
        self._content: dict[K, Any] = {key: frozen(value) for key, value in dict(content).items()}

    def __getitem__(self, key: K) -> Any:
        return self._content[key]

    def __iter__(self) -> Iterator[K]:
        return iter(self._content)

    def __len__(self) -> int:
        return len(self._content)

    def __hash__(self) -> int:
        return hash(frozenset(self._content.items()))

    def __repr__(self) -> str:
        return repr(self._content)


def frozen(value: Any) -> Any:
    """The same value with lists and arrays in it as tuples, mappings as `FrozenMapping`s."""
    match value:
        case np.ndarray():
            return frozen(value.tolist())
        case list() | tuple():
            return tuple(frozen(part) for part in value)
        case Mapping() if not isinstance(value, FrozenMapping):
            return FrozenMapping(value)
    return value
