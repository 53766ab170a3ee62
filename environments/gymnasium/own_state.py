"""Environments that offer their own state, so that a run resumes without replaying their episodes.

class Walk(gymnasium.Env):
    def save_state(self):
        return {"place": self.place.copy(), "turns": self.turns}

    def restore_state(self, state):
        self.place = state["place"].copy()
        self.turns = state["turns"]
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any, Protocol, runtime_checkable

import gymnasium
import numpy as np
from gymnasium.wrappers import OrderEnforcing, TimeLimit

from coach_rl.core.errors import CheckpointError
from coach_rl.core.shown_text import shown_value
from coach_rl.core.state import State

WRAPPERS: Mapping[type, tuple[str, ...]] = {
    OrderEnforcing: ("_has_reset",),
    TimeLimit: ("_elapsed_steps",),
}
"""The attributes that are the state of wrappers which `gymnasium.make` puts around environments."""

_PLAIN = (bool, int, float, str, type(None), np.bool_, np.integer, np.floating)


@runtime_checkable
class OffersState(Protocol):
    """A Gymnasium environment, or a wrapper with what is in it, that offers its own state."""

    def save_state(self) -> State:
        """Everything that its next steps depend on, but for `np_random`, which is saved as well.

        Dicts with str keys whose leaves are arrays, numbers, strings, bools or None.
        """
        ...

    def restore_state(self, state: State) -> None:
        """Continue where the state was saved, in another copy of the environment.

        Called before or after a `reset`; `np_random` is restored afterwards.
        """
        ...


class OwnState:
    """The state of an environment that offers it, and of the wrappers around that.

    Args:
        env: The environment that offers it.
        wrappers: Those around it, outermost first, all of `WRAPPERS`.
    """

    def __init__(self, env: OffersState, wrappers: list[Any]) -> None:
        self._env = env
        self._wrappers = wrappers

    def save(self) -> State:
        """A state for `restore` that shares no memory with the environment.

        Raises:
            CheckpointError: The environment's own contains something that cannot be saved.
        """
        state = self._env.save_state()
        for problem in _problems(state, "save_state()"):
            raise CheckpointError(f"{problem}; allowed: arrays, numbers, strings, bools and None")
        return {
            "environment": deepcopy(state),
            "wrappers": {
                str(number): {name: vars(wrapper)[name] for name in WRAPPERS[type(wrapper)]}
                for number, wrapper in enumerate(self._wrappers)
            },
        }

    def restore(self, state: State) -> None:
        """Load a state of an environment that was made alike."""
        self._env.restore_state(deepcopy(state["environment"]))
        for number, wrapper in enumerate(self._wrappers):
            vars(wrapper).update(state["wrappers"][str(number)])


def own_state_of(env: gymnasium.Env[Any, Any]) -> OwnState | None:
    """The state that an environment offers; None if it offers none, or a wrapper may have another.

    Args:
        env: The environment in its wrappers.
    """
    wrappers: list[Any] = []
    inner: Any = env
    while not isinstance(inner, OffersState):
        kept = WRAPPERS.get(type(inner))
        if kept is None or any(name not in vars(inner) for name in kept):
            return None
        wrappers.append(inner)
        inner = inner.env
    return OwnState(inner, wrappers)


def _problems(state: object, place: str) -> Iterator[str]:
    """Descriptions of the parts of a state that cannot be saved."""
    if isinstance(state, dict):
        for key, part in state.items():
            if not isinstance(key, str):
                yield f"{place} has the key {shown_value(key)}, which is no string"
            yield from _problems(part, f"{place}[{key!r}]")
    elif isinstance(state, np.ndarray):
        if state.dtype.hasobject:
            yield f"{place} is an array of objects"
    elif not isinstance(state, _PLAIN):
        yield f"{place} is {shown_value(state)}, a {type(state).__name__}"
