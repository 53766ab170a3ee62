"""The rows of a filtering agent: their state, and decisions as it keeps them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from coach_rl.core.agents import AgentContext, RowState
from coach_rl.core.interfaces import InputFilter, OutputFilter
from coach_rl.core.records import (
    Action,
    Array,
    BoolArray,
    IntArray,
    Observation,
    Outcome,
    Transition,
)
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.state import State, Stateful

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
        SavedAttribute("before", varies=True, optional=True),
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
    before: dict[str, Array] | None = None
    """Unfiltered observations that rows act on, and their actions, for terms of the reward; None:
    there are none."""
    followed: dict[str, Array] = field(default_factory=dict)
    """Choices to follow, made by another copy of the agent; empty: it chooses itself."""

    def decisions(self) -> State:
        return dict(self.choice)

    def follow(self, decisions: State) -> None:
        self.followed = decisions


AnyAgentRows: TypeAlias = AgentRows[Any]
"""The rows of an agent, whatever they explore with."""


class Filtering(Protocol):
    """A named agent with filters."""

    name: str
    """Its name."""
    input_filter: InputFilter
    """Filter of observations and rewards."""
    output_filter: OutputFilter
    """Filter of actions."""


class TransitionFilter(Stateful, Protocol):
    """A filter of what an agent stores."""

    def __call__(self, transition: Transition, outcome: Outcome) -> Sequence[Transition]:
        """Transitions to store now, in this order, whole (sub-)episodes of a row at a time.

        Args:
            transition: Of R decisions.
            outcome: What they led to, unfiltered.
        """
        ...

    def drop(self, rows: IntArray) -> None:
        """Drop what is held back of these rows: their episodes stop here."""
        ...


class TransitionFilterParameters(Protocol):
    """A frozen description of a filter of transitions."""

    def build(self, context: AgentContext) -> TransitionFilter:
        """The filter at an agent's place."""
        ...


def write_rows(
    store: dict[str, Array], rows: IntArray, values: dict[str, Array], num_rows: int
) -> None:
    """Write values [R, ...] by name to the rows of arrays [N, ...], which are made when missing."""
    for name, value in values.items():
        array = store.get(name)
        if array is None:
            array = store[name] = np.zeros((num_rows, *value.shape[1:]), value.dtype)
        array[rows] = value


def flat_action(action: Action) -> dict[str, Array]:
    """An action, or its parts, as `AgentRows` keep it."""
    if isinstance(action, dict):
        return {f"action/{key}": values for key, values in action.items()}
    return {"action": action}


def action_of(choice: dict[str, Array]) -> Action:
    """Take the action out of a flat choice; what remains are the extras."""
    if "action" in choice:
        return choice.pop("action")
    names = [name for name in choice if name.startswith("action/")]
    return {name.removeprefix("action/"): choice.pop(name) for name in names}
