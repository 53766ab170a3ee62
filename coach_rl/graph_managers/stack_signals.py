"""Signals of a stack for the log: infos of its environments, and notes of its agents."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase

import numpy as np

from coach_rl.core.errors import warn
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array, BoolArray, EnvResponse
from coach_rl.core.saved import Saved
from coach_rl.core.signals import SignalChannel
from coach_rl.graph_managers.statistics import SignalWindows

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


def _are_numbers(values: Array) -> bool:
    """Return whether an info is one number a row."""
    return values.ndim == 1 and values.dtype.kind in "biuf"
