"""The calls inside an object whose times a profile shows."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol, runtime_checkable


class TimedCall(NamedTuple):
    """A method whose calls are timed while a run is profiled."""

    owner: object
    method: str
    name: str
    """Name in the profile; calls of one name below one parent are counted together."""


@runtime_checkable
class HasTimedCalls(Protocol):
    """An object that names the calls inside it that are worth timing."""

    def timed_calls(self) -> Sequence[TimedCall]:
        """Return its own, and those of its parts."""
        ...
