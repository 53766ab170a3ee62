"""The shared half of agents that act and learn nothing."""

import sys

from coach_rl.core.agents import RowState, TrainingReport
from coach_rl.core.clock import Clock
from coach_rl.core.errors import SpaceError
from coach_rl.core.records import IntArray, Outcome
from coach_rl.core.saved import Saved
from coach_rl.core.state import State


class ActingOnly(Saved):
    """An agent without a memory or anything to learn; its kinds add `new_rows` and `act`.

    Args:
        name: The agent's name in logs.
    """

    is_on_policy = False

    def __init__(self, name: str) -> None:
        self.name = name

    def observe(self, row_state: RowState, outcome: Outcome, clock: Clock) -> None:
        """Nothing is kept."""

    def cut_off(self, row_state: RowState, rows: IntArray, clock: Clock) -> None:
        """Nothing is kept."""

    def restart_rows(self, row_state: RowState) -> None:
        """Nothing is kept."""

    def decisions_until_training(self) -> int:
        """No number of decisions makes training due."""
        return sys.maxsize

    def train(self, clock: Clock) -> TrainingReport | None:
        """Never due."""
        return None

    def policy_state_dict(self) -> State:
        """Nothing is learned."""
        return {}

    def load_policy(self, state: State) -> None:
        """Refused: there is nothing that could be loaded."""
        raise SpaceError(f"agent '{self.name}' learns nothing, so nothing can be loaded into it")
