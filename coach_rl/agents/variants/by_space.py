"""The choice of an algorithm's learner by the kind of action space."""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol, TypeVar

from coach_rl.agents import variants
from coach_rl.core.spaces import Space

Made = TypeVar("Made", covariant=True)


class Acts(Protocol):
    """An agent, which acts in a space."""

    @property
    def action_space(self) -> Space:
        """The agent's action space."""
        ...


def made_for_space(by_space: Callable[[Space, Any, Any], Made], params: Any, agent: Acts) -> Made:
    """The learner of an algorithm for the kind of an agent's action space.

    Args:
        by_space: The algorithm's function by the class of a space, see `functools.singledispatch`.
        params: The agent's parameters.
        agent: The agent that learns by it.
    """
    _register_all()
    return by_space(agent.action_space, params, agent)


@cache
def _register_all() -> None:
    """Import every file of this folder."""
    for each in iter_modules(variants.__path__):
        import_module(f"{variants.__name__}.{each.name}")
