"""The state that a filtering agent keeps of its rows."""

from dataclasses import dataclass, field
from typing import Generic, TypeVar

from coach_rl.core.agents import RowState
from coach_rl.core.records import Array, BoolArray, Observation
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.state import State

Exploration = TypeVar("Exploration", bound=RowState)


@dataclass(kw_only=True)
class AgentRows(Generic[Exploration]):
    """The state an agent keeps per row of one stack; all arrays [N, ...]."""

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

    def state_dict(self) -> State:
        """Everything."""
        return {
            "filters": {name: values.copy() for name, values in self.filters.items()},
            "heatup_noise": self.heatup_noise.state_dict(),
            "exploration": self.exploration.state_dict(),
            "heatup": self.heatup.copy(),
            "follows": self.follows.copy(),
            "pending": {key: values.copy() for key, values in self.pending.items()},
            "choice": {name: values.copy() for name, values in self.choice.items()},
        }

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state."""
        for name, values in self.filters.items():
            values[:] = state["filters"][name]
        self.heatup_noise.load_state_dict(state["heatup_noise"])
        self.exploration.load_state_dict(state["exploration"])
        self.heatup[:] = state["heatup"]
        self.follows[:] = state["follows"]
        self.pending = {key: values.copy() for key, values in state["pending"].items()}
        self.choice = {name: values.copy() for name, values in state["choice"].items()}
