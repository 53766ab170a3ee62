"""The records between an agent and its memory: what it chose, and what came of that."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation


@dataclass(frozen=True, kw_only=True)
class ActionInfo:
    """An agent's choice, and whatever it wants kept with it."""

    action: Action
    """[R, ...] in the agent's own action space, before its OutputFilter."""
    extras: dict[str, Array] = field(default_factory=dict)
    """[R, ...] each, e.g. `log_prob`, `value`, `hidden_state`."""


@dataclass(frozen=True, kw_only=True)
class Transition:
    """One decision and its outcome, as a memory keeps it; each array [R, ...]."""

    rows: IntArray
    observation: Observation
    action: Action
    reward: FloatArray
    next_observation: Observation
    terminated: BoolArray
    truncated: BoolArray
    duration: IntArray
    below: npt.NDArray[np.uint8] | None = None
    """Bits of `End` that the level below reported; None: not known, as in data from elsewhere."""
    tested: BoolArray | None = None
    """The decision was tested; None: none was."""
    follows: BoolArray | None = None
    """True where it begins at the end of the row's previous transition: in the same episode, under
    the same goal, with no decision left out between them. None: not known, taken as true within an
    episode."""
    extras: dict[str, Array] = field(default_factory=dict)
    """The extras of the ActionInfo."""

    @property
    def follows_or_all(self) -> BoolArray:
        """`follows`, true everywhere where it is not known."""
        return np.ones(len(self.rows), np.bool_) if self.follows is None else self.follows
