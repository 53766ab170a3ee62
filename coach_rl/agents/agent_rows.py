"""The state that a filtering agent keeps of its rows, and the infos it keeps with transitions."""

import warnings
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

import numpy as np

from coach_rl.core.agents import RowState
from coach_rl.core.errors import CoachWarning, SpaceError
from coach_rl.core.records import Array, BoolArray, Observation, Outcome
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.state import State
from coach_rl.memories.batches import INFOS

Exploration = TypeVar("Exploration", bound=RowState)


@dataclass(kw_only=True)
class AgentRows(Saved, Generic[Exploration]):
    """The state an agent keeps per row of one stack; all arrays [N, ...]."""

    SAVED: ClassVar[SavedNames] = (
        "filters",
        "heatup_noise",
        "exploration",
        "heatup",
        "follows",
        SavedAttribute("pending", varies=True),
        SavedAttribute("choice", varies=True),
    )

    filters: dict[str, Array]
    """Memory of the filters that keep something per row."""
    heatup_noise: RowNoise
    """Uniform numbers for random actions."""
    exploration: Exploration
    """Noise and processes the agent explores with."""
    heatup: BoolArray
    """The open decision was made in HEATUP."""
    follows: BoolArray
    """The row acts on the next observation of its last stored transition, under the same goal."""
    pending: Observation = field(default_factory=dict)
    """The filtered observation that the row acts on, or has acted on."""
    choice: dict[str, Array] = field(default_factory=dict)
    """The open decision's ActionInfo by name: `action` or `action/<part>`, and its extras."""
    followed: dict[str, Array] | None = None
    """Choices to follow, made by another copy of the agent; None: it chooses itself."""

    def decisions(self) -> State:
        return dict(self.choice)

    def follow(self, decisions: State) -> None:
        self.followed = decisions


class InfoColumns:
    """Extraction of the stored infos from outcomes.

    Args:
        names: Their names.
        agent: The agent's name, for messages.
    """

    def __init__(self, names: tuple[str, ...], *, agent: str) -> None:
        self._names, self._agent = names, agent
        self._missing: set[str] = set()

    @property
    def extras(self) -> tuple[str, ...]:
        """Their names among the extras."""
        return tuple(f"{INFOS}{name}" for name in self._names)

    def of(self, outcome: Outcome, index: slice | BoolArray) -> dict[str, Array]:
        """The extras of some of the outcome's rows, float32 [R] each.

        Args:
            outcome: With the environment's infos.
            index: Its places that are kept.

        Raises:
            SpaceError: An info is not one number a row.

        Warns:
            CoachWarning: The environment does not report an info; warns once.
        """
        columns = {}
        for name, extra in zip(self._names, self.extras, strict=True):
            values = outcome.info.get(name)
            if values is None:
                self._warn_of(name, outcome)
                values = np.zeros(len(outcome.rows), np.float32)
            elif values.ndim != 1 or values.dtype.kind not in "biuf":
                raise SpaceError(
                    f"agent '{self._agent}' is to keep the info '{name}', which is {values.dtype} "
                    f"of shape {values.shape[1:]} and not one number a row; leave it out of `infos`"
                )
            columns[extra] = values[index].astype(np.float32)
        return columns

    def _warn_of(self, name: str, outcome: Outcome) -> None:
        if name in self._missing:
            return
        self._missing.add(name)
        there = [other for other in outcome.info if not other.startswith("_")]
        warnings.warn(
            f"agent '{self._agent}' is to keep the info '{name}', which the environment does not "
            f"report now; 0 is kept until it does. It reports {', '.join(there) or 'none'}",
            CoachWarning,
            stacklevel=2,
        )
