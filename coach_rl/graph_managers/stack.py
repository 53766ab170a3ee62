"""Levels above one set of environments, which make their ticks together."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import CheckpointError
from coach_rl.core.interfaces import Environment
from coach_rl.core.records import BoolArray, EnvResponse
from coach_rl.core.state import State
from coach_rl.graph_managers.stack_signals import StackSignals
from coach_rl.levels.level_manager import LevelManager


class TickSource:
    """Source of a stack's ticks; this one lets the levels decide and the simulators step.

    Another one has its decisions made elsewhere, and answers in place of the simulators, too:
    `begin` finds the next tick and lets the levels follow its decisions; `recv` of what stands in
    place of the simulators is its answer. What it remembers is saved in the state of the latter.
    """

    name: str = "the run's own process"
    """Its name in saved states; open episodes are restored from a state of the same name alone."""
    acts_here: bool = True
    """True if agents act in this process, where their decisions can be inspected."""

    def begin(self, stack: "Stack") -> BoolArray | None:  # noqa: ARG002 - for other sources
        """The rows [N] of the next tick, which begins; None for all."""
        return None

    def metrics(self) -> dict[str, float]:
        """Metrics of its own since the last call, by `room/quantity`."""
        return {}


OWN_PROCESS = TickSource()
"""Source of the ticks of a stack on simulators of this process."""


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Levels above one set of environments, with a clock of their own."""

    levels: tuple[LevelManager, ...]
    """Top first."""
    clock: Clock
    signals: StackSignals
    source: TickSource = OWN_PROCESS
    """Source of its ticks."""

    @cached_property
    def simulators(self) -> Environment:
        """The environment that the lowest level acts on."""
        return self.levels[-1].environment

    @property
    def num_envs(self) -> int:
        """N."""
        return self.levels[0].num_envs

    def reset(self, seed: int | Sequence[int]) -> None:
        """Reset all rows, with these seeds."""
        self.levels[0].reset(seed)

    def tick(self) -> EnvResponse:
        """One step of all environments; what they answered.

        It is `recv` of the top level, level by level: that returns only where the top's decisions
        are over, and episode trackers need every step.
        """
        among = self.source.begin(self)
        self.decide(among)  # decisions go down ...
        response = self.simulators.recv()
        for note in self.signals.notes:
            note(response)
        self.pass_up(response)  # ... and answers go up
        if self.clock.phase is not Phase.TEST:  # schedules do not advance where nothing learns
            self.clock.environment_steps += int(np.add.reduce(response.duration))
        return response

    def decide(self, among: BoolArray | None = None) -> None:
        """Send the decisions of all levels that are due, the top's first, in these rows [N]."""
        for level in self.levels:
            level.decide(among)

    def pass_up(self, response: EnvResponse) -> None:
        """Let each level process what the simulators answered, the lowest first."""
        for level in reversed(self.levels):
            response = level.process(response)

    def path(self, row: int) -> Sequence[LevelManager]:  # noqa: ARG002 - of a graph of levels
        """The levels that act in a row, top first."""
        return self.levels

    def begin_counting(self, rows: BoolArray) -> None:
        """Clear signals and sub-episodes so far, and continue with those of the rows [N] alone."""
        for level in self.levels:
            level.drain()
        self.signals.forget()
        self.count_only(rows)

    def count_only(self, rows: BoolArray) -> None:
        """Leave out the sub-episodes and infos of other rows than these, [N]."""
        self.signals.count_only(rows)
        for level in self.levels:
            level.count_only(rows)

    def state_dict(self, *, with_simulators: bool = True) -> State:
        """Levels, open episodes, simulators and clock.

        Args:
            with_simulators: False where they cannot be saved; their state is None then.
        """
        state = self.simulators.state_dict() if with_simulators else None
        return {
            "top": self._levels_state(state),
            "clock": self.clock.state_dict(),
            "signals": self.signals.state_dict(),
            "source": self.source.name,
        }

    def load_state_dict(self, state: State, *, with_simulators: bool = True) -> None:
        """Load a saved state; without the simulators, `restart` must follow.

        Raises:
            CheckpointError: The simulators are those of another source.
        """
        below = self._load_levels(state["top"])
        if with_simulators:
            saved = state.get("source", OWN_PROCESS.name)
            if saved != self.source.name:
                raise CheckpointError(f"they are those of {saved}, not of {self.source.name}")
            self.simulators.load_state_dict(below)
        self.clock.load_state_dict(state["clock"])
        self.signals.load_state_dict(state["signals"])

    def _levels_state(self, state: State | None) -> State:
        """The state of all levels, around that of the simulators."""
        for level in reversed(self.levels):
            state = {"environment": state, **level.own_state_dict()}
        assert state is not None
        return state

    def _load_levels(self, state: State) -> State:
        """Load the state of all levels; returns that of the simulators."""
        for level in self.levels:
            level.load_own_state_dict(state)
            state = state["environment"]
        return state

    def reset_all(self, seed: int) -> None:
        """Reset all rows and the agents' random streams.

        So equal agents act equally, however many episodes were played before.
        """
        for level in self.levels:
            level.begin_streams()
        self.reset(seed)

    def restart(self, seed: int) -> None:
        """Drop all open episodes and begin others, with these seeds; the rest continues."""
        for level in self.levels:
            level.agent.restart_rows(level.agent_rows)
        self.reset(seed)

    def close(self) -> None:
        """Close the environments."""
        self.levels[0].close()
