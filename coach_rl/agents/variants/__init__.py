"""Variants of algorithms for further kinds of action space, a file each, which registers its own.

No other file of the rooms names one: a file that is deleted takes its variant away. A module of
yours registers a learner in the same way, and your preset imports it:

    @dqn_learner.register(spaces.MultiBinary)
    def switches_learner(
        space: spaces.MultiBinary, params: DQNAgentParameters, agent: OffPolicyAgent
    ) -> Learner:
        return SwitchesLearner(params, agent)

May import what `agents` may.
"""

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Protocol, TypeVar

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
    for each in iter_modules(__path__):
        import_module(f"{__name__}.{each.name}")
