"""The calls inside an object whose times a profile shows.

A class names its own: `TIMED = {"rollout_batch": "advantages", "memory.rollout": "sample"}`, the
method, of itself or of an attribute, and the name in the profile; empty: the part's name.
"""

from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import NamedTuple, Protocol, runtime_checkable

from coach_rl.core.parts import declared, walk


class TimedCall(NamedTuple):
    """A method whose calls are timed while a run is profiled."""

    owner: object
    method: str
    name: str
    """Name in the profile; calls of one name below one parent are counted together."""


@runtime_checkable
class HasTimedCalls(Protocol):
    """An object whose timed calls depend on more than its class."""

    def timed_calls(self) -> Sequence[TimedCall]:
        """Return its own; parts name theirs."""
        ...


def timed_calls(whole: object) -> Iterator[TimedCall]:
    """The calls that an object and its parts name; a group's members below their names."""
    for part in walk(whole):
        if part.is_agent and part.members:
            for method in ("act", "observe", "train"):
                yield TimedCall(part.value, method, part.name)
        for named in declared(type(part.value), "TIMED"):
            for path, name in named.items():
                owner, _, method = path.rpartition(".")
                of = attrgetter(owner)(part.value) if owner else part.value
                yield TimedCall(of, method, name or part.name)
        if isinstance(part.value, HasTimedCalls):
            yield from part.value.timed_calls()
