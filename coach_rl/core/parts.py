"""The parts of an object, named once, in which services search for their targets.

    class Planner:
        def parts(self):
            return {"network": self.network, "memory": self.memory}

    for part in walk(planner):
        part.name, part.value                    # "" and the planner, then "network", "memory"

Parts that are None are skipped. An object whose timed calls depend on more than its class has a
method `timed_calls()` that returns its own.

A service is a function that walks this tree when it begins: `timed_calls`,
`note_signals`, `update_modes`, `description_of`. None of them runs in a tick.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import Any, NamedTuple

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import Array


@dataclass(frozen=True)
class Part:
    """A node of the tree."""

    name: str
    """Its name in the object that it is a part of; empty for the root."""
    value: Any
    agent: Any
    """The innermost agent that it is part of, itself if it is one; None outside agents."""
    members: tuple[str, ...] = ()
    """Names of that agent in the agents around it, outermost first; empty if it is in none."""

    @property
    def is_agent(self) -> bool:
        """True if it acts and learns."""
        return self.agent is self.value


def walk(root: object) -> Iterator[Part]:
    """The root, and all parts below it, each object once; parts follow their owner."""
    yield from _walked(Part("", root, root if _is_agent(root) else None), set())


def _walked(part: Part, seen: set[int]) -> Iterator[Part]:
    seen.add(id(part.value))
    yield part
    if not hasattr(part.value, "parts"):
        return
    for name, value in part.value.parts().items():
        if value is None or id(value) in seen:
            continue
        if not _is_agent(value):
            yield from _walked(Part(name, value, part.agent, part.members), seen)
        else:
            yield from _walked(Part(name, value, value, (*part.members, name)), seen)


def _is_agent(value: object) -> bool:
    return hasattr(value, "act") and hasattr(value, "observe") and hasattr(value, "train")


def declared(kind: type, name: str) -> tuple[Any, ...]:
    """The values that a class and its bases give a class attribute, those of bases first."""
    return tuple(vars(each)[name] for each in reversed(kind.__mro__) if name in vars(each))


def description_of(agent: Any) -> str:
    """An agent for people: its own `description()`, or else its networks and their updates."""
    if hasattr(agent, "description"):
        return str(agent.description())
    parts = list(walk(agent))
    networks = [f"{each.name}: {each.value.summary()}" for each in parts if is_network(each.value)]
    updates = [f"updates: {each.value.updates}" for each in parts if hasattr(each.value, "updates")]
    return "\n".join([*networks, *updates])


def trajectories_of(agent: Any) -> dict[str, Array]:
    """The contents of an agent's memory, by the paths of `memories.batches.shown_as`.

    Those of an agent in it are below `/agents/<name>`, [N, T, ...] each: every memory has its own
    T and `/agents/<name>/mask`. Empty where nothing is kept.
    """
    found: dict[str, Array] = {}
    for part in walk(agent):
        if part.name == "memory" and len(part.value):
            below = "".join(f"/agents/{name}" for name in part.members[-1:])
            for path, values in part.value.trajectories(part.agent.name).items():
                is_below = not below or path.startswith(f"{below}/")
                found[path if is_below else f"{below}{path}"] = values
    return found


def is_network(value: object) -> bool:
    """Return whether a part is a network with parameters of its own."""
    return hasattr(value, "module") and hasattr(value, "summary")


class TimedCall(NamedTuple):
    """A method whose calls are timed while a run is profiled."""

    owner: object
    method: str
    name: str
    """Name in the profile; calls of one name below one parent are counted together."""


def timed_calls(whole: object) -> Iterator[TimedCall]:
    """The calls that an object and its parts name; those of agents in it below their names."""
    for part in walk(whole):
        if part.is_agent and part.members:
            for method in ("act", "observe", "train"):
                yield TimedCall(part.value, method, part.name)
        for named in declared(type(part.value), "TIMED"):
            for path, name in named.items():
                owner, _, method = path.rpartition(".")
                of = attrgetter(owner)(part.value) if owner else part.value
                yield TimedCall(of, method, name or part.name)
        if hasattr(part.value, "timed_calls"):
            yield from part.value.timed_calls()


def wrap_method(owner: object, method: str, wrapper: Callable[..., object]) -> None:
    """Replace a method by a wrapper of it, on this object alone."""
    try:
        object.__setattr__(owner, method, wrapper)  # frozen ones as well
    except AttributeError as error:
        kind = type(owner).__name__
        raise ConfigurationError(
            f"{kind}.{method} cannot be wrapped, because {kind} has __slots__; leave them out"
        ) from error
