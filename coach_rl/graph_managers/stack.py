"""Levels above one set of environments, which make their ticks together, and their signals."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

import numpy as np

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import CheckpointError, warn
from coach_rl.core.interfaces import Environment
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array, BoolArray, EnvResponse
from coach_rl.core.saved import Saved
from coach_rl.core.signals import SignalChannel
from coach_rl.core.state import State
from coach_rl.graph_managers.statistics import SignalWindows
from coach_rl.levels.level_manager import LevelManager

MOST_NAMED = 30
"""Names of infos that a warning lists at most."""


@parameter_class
class SignalParameters:
    """The infos of the environment, and the observations of agents, that are logged."""

    infos: tuple[str, ...] = ()
    """Names of infos whose statistics are logged, or patterns such as `reward_*`; one number a row
    each."""
    observations: bool = False
    """True to log the ranges of what agents observe, by key: the minimum and maximum of
    `signals/<level>/observations/<key>`."""


class StackSignals(Saved):
    """Collects the signals of a stack while it ticks.

    Args:
        num_envs: N.
        params: Which infos; None: none.
        channel: What the agents note through, shared with the run's other stack; None: nothing.
    """

    SAVED = ("_windows", "_has_checked")

    def __init__(
        self,
        *,
        num_envs: int,
        params: SignalParameters | None = None,
        channel: SignalChannel | None = None,
    ) -> None:
        self._patterns = () if params is None else params.infos
        self.notes: tuple[Callable[[EnvResponse], None], ...] = (
            (self.note,) if self._patterns else ()
        )
        """Functions called with each answer of the simulators; empty where no infos are logged."""
        self._channel = SignalChannel() if channel is None else channel
        self._windows = SignalWindows()
        self._counted = np.ones(num_envs, np.bool_)
        self._is_chosen: dict[str, bool] = {}
        """True for infos that are logged, by name, of all there have been."""
        self._unfit: dict[str, str] = {}
        """Descriptions of requested infos that are no numbers, by name."""
        self._has_checked = False

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Receive the signals of agents inside, instead of the run's other stack."""
        before = self._channel.listener
        self._channel.listener = self._windows.note
        try:
            yield
        finally:
            self._channel.listener = before

    def count_only(self, rows: BoolArray) -> None:
        """Leave out the infos of other rows than these, [N]."""
        self._counted = rows.copy()

    def note(self, answer: EnvResponse) -> None:
        """Record the infos of a step."""
        kept = self._counted[answer.rows] & ~answer.lost
        is_all = bool(kept.all())
        for name, values in answer.info.items():
            is_chosen = self._is_chosen.get(name)
            if is_chosen is None:
                is_chosen = self._is_chosen[name] = self._choose(name, values, answer)
            if not is_chosen or not _are_numbers(values):
                continue
            reported = answer.info.get(f"_{name}")  # not all rows have this info
            if reported is not None:
                self._windows.note(name, values[kept & reported])
            else:
                self._windows.note(name, values if is_all else values[kept])

    def forget(self) -> None:
        """Clear the windows."""
        self._windows.clear()

    def drain(self, room: str) -> dict[str, float]:
        """Return the statistics since the last call; see `SignalWindows.drain`."""
        return self._windows.drain(room)

    def warn_once(self) -> None:
        """Warn of patterns that match no info so far, and of infos that cannot be logged."""
        if self._has_checked:
            return
        self._has_checked = True
        names = [name for name in self._is_chosen if not name.startswith("_")]
        for name, what in self._unfit.items():
            warn(
                f"signals.infos names the info '{name}', which is {what} and is not logged; "
                "only infos of one number a row are"
            )
        unmatched = [
            pattern
            for pattern in self._patterns
            if not any(fnmatchcase(name, pattern) for name in names)
        ]
        if unmatched:
            more = f" and {len(names) - MOST_NAMED} more" * (len(names) > MOST_NAMED)
            there = ", ".join(sorted(names)[:MOST_NAMED]) + more
            warn(
                f"signals.infos: no info of the environment has matched "
                f"{', '.join(map(repr, unmatched))} so far; it has reported {there or 'none'}"
            )

    def _choose(self, name: str, values: Array, answer: EnvResponse) -> bool:
        """Return whether an info is to be logged that has come for the first time."""
        if name.startswith("_") and name[1:] in answer.info:  # which rows have that info
            return False
        if not any(fnmatchcase(name, pattern) for pattern in self._patterns):
            return False
        if not _are_numbers(values):
            self._unfit[name] = f"{values.dtype} of shape {values.shape[1:]}"
        return True


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


def _are_numbers(values: Array) -> bool:
    """Return whether an info is one number a row."""
    return values.ndim == 1 and values.dtype.kind in "biuf"
