"""The state that a filtering agent keeps of its rows."""

from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from coach_rl.core.agents import RowState
from coach_rl.core.records import Array, BoolArray, Observation
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved, SavedAttribute, SavedNames
from coach_rl.core.state import State

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
    """The row acts on what its last stored transition led to, under the same goal."""
    pending: Observation = field(default_factory=dict)
    """The filtered observation that the row acts on, or has acted on."""
    choice: dict[str, Array] = field(default_factory=dict)
    """The open decision's ActionInfo by name: `action` or `action/<part>`, and its extras."""
    followed: dict[str, Array] | None = None
    """Choices made elsewhere, which the next ones are; None where the agent makes its own."""

    def decisions(self) -> State:
        """Return the choices that each row made last."""
        return dict(self.choice)

    def follow(self, decisions: State) -> None:
        """Take the next choices from here."""
        self.followed = decisions
