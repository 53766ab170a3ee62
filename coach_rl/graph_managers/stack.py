"""Levels above one set of environments, which make their ticks together."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import CheckpointError
from coach_rl.core.interfaces import Environment
from coach_rl.core.records import BoolArray, EnvResponse
from coach_rl.core.state import State
from coach_rl.graph_managers.stack_signals import StackSignals
from coach_rl.levels.level_manager import LevelManager


@dataclass(frozen=True, kw_only=True)
class Stack:
    """Levels above one set of environments, with a clock of their own."""

    levels: tuple[LevelManager, ...]
    """Top first."""
    clock: Clock
    signals: StackSignals

    @property
    def simulators(self) -> Environment:
        """The environment that the lowest level acts on."""
        return self.levels[-1].environment

    @property
    def num_envs(self) -> int:
        """N."""
        return self.levels[0].num_envs

    def reset(self, seed: int | Sequence[int]) -> None:
        """Start every row anew, with the seeds given."""
        self.levels[0].reset(seed)

    def tick(self) -> EnvResponse:
        """One step of all environments; what they answered.

        It is `recv` of the top level, level by level: that returns only where the top's decisions
        are over, and whoever follows episodes needs every step.
        """
        return self.tick_of(None)

    @property
    def fork_steps(self) -> int | None:
        """Simulator steps in forks so far; None where no level certifies its decisions."""
        certifiers = [level.certifier for level in self.levels if level.certifier is not None]
        return sum(each.steps for each in certifiers) if certifiers else None

    def metrics(self) -> dict[str, float]:
        """Metrics of the stack itself since the last call."""
        steps = self.fork_steps
        return {} if steps is None else {"forks/environment_steps": float(steps)}

    def tick_of(self, among: BoolArray | None) -> EnvResponse:
        """A tick of these rows [N] alone; None for all."""
        self.signals.listen()
        for level in self.levels:  # decisions go down ...
            level.decide(among)
        heard = answer = self.simulators.recv()
        self.signals.note(heard)
        for level in reversed(self.levels):  # ... and answers go up
            answer = level.take_in(answer)
        if self.clock.phase is not Phase.TEST:  # schedules stand still where nothing learns
            self.clock.environment_steps += int(np.add.reduce(heard.duration))
        return heard

    def begin_counting(self, rows: BoolArray) -> None:
        """Forget signals and sub-episodes so far, and continue with those of the rows [N] alone."""
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
            with_simulators: False where they cannot be saved; None stands in their place then.
        """
        state = self.simulators.state_dict() if with_simulators else None
        for level in reversed(self.levels):
            state = {"environment": state, **level.own_state_dict()}
        return {
            "top": state,
            "clock": self.clock.state_dict(),
            "signals": self.signals.state_dict(),
        }

    def load_state_dict(self, state: State, *, with_simulators: bool = True) -> None:
        """Go on from a saved state; without the simulators, `restart` must follow."""
        below = state["top"]
        for level in self.levels:
            level.load_own_state_dict(below)
            below = below["environment"]
        if with_simulators:
            self._load_simulators(below)
        self.clock.load_state_dict(state["clock"])
        if "signals" in state:  # not in checkpoints of earlier versions
            self.signals.load_state_dict(state["signals"])

    def _load_simulators(self, state: State) -> None:
        if "workers" in state:
            raise CheckpointError(f"they are those of {len(state['workers'])} workers, not of none")
        self.simulators.load_state_dict(state)

    def begin_anew(self, seed: int) -> None:
        """Begin other episodes with these seeds, and the agents' random streams once more.

        So equal agents play alike, however many episodes were played before.
        """
        for level in self.levels:
            level.begin_streams()
        self.reset(seed)

    def restart(self, seed: int) -> None:
        """Give up all open episodes and begin others, with these seeds; the rest continues."""
        for level in self.levels:
            level.agent.restart_rows(level.agent_rows)
        self.reset(seed)

    def close(self) -> None:
        """Close the environments."""
        self.levels[0].close()
