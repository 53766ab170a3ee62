"""The types of a saved state, and the protocol of the objects that have one."""

from collections.abc import Iterator
from typing import Any, Protocol

from coach_rl.core.errors import CheckpointError

State = dict[str, Any]
"""Dicts with str keys whose leaves are arrays, tensors, numbers, strings, bools, None or lists."""


class Stateful(Protocol):
    """Anything that must be saved to continue exactly where it stopped."""

    def state_dict(self) -> State:
        """Everything mutable, as a `State` tree that shares no memory with the object."""
        ...

    def load_state_dict(self, state: State) -> None:
        """Load a state made by `state_dict` of an equally built object."""
        ...


def check_same_kind(what: str, saved: State, mine: State) -> None:
    """Raise `CheckpointError` unless two states hold the same things, whatever their values."""
    found, wanted = sorted(_paths(saved)), sorted(_paths(mine))
    if found != wanted:
        raise CheckpointError(
            f"its {what} hold {', '.join(found) or 'nothing'}, those here "
            f"{', '.join(wanted) or 'nothing'}"
        )


def _paths(state: object, path: str = "") -> Iterator[str]:
    """The path of everything in a state that is no dict."""
    if not isinstance(state, dict):
        yield path
        return
    for key, part in state.items():
        yield from _paths(part, f"{path}/{key}" if path else key)
