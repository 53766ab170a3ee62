"""The types of a saved state, and the protocol of the objects that have one."""

from typing import Any, Protocol

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
