"""Signals to a run: stop and save, save and continue, leave at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Self

from coach_rl.core.runtime import FIRST_STEP, OnActivity
from coach_rl.processes.signals import signals_of

Handler = Callable[[int, FrameType | None], object] | int | None
"""A handler of signals, as `signal.signal` takes and returns it."""

STOPS = signals_of("SIGINT", "SIGTERM", "SIGHUP", "SIGUSR2", "SIGXCPU")
"""Signals that end a run: Ctrl-C, a scheduler's or the system's, a terminal that is closed, a
scheduler's warning, and the limit of processor time."""
OF_SCHEDULERS = signals_of("SIGUSR2", "SIGXCPU")
"""Those that stay with a handler which the program has for them, such as submitit's."""
SAVES = signals_of("SIGUSR1")
"""The signal that requests a checkpoint, where the system has it."""


class Interrupted(KeyboardInterrupt):
    """A run is left at once, without saving.

    Args:
        message: A message for the user; empty for none.
        signal: The signal's number.
    """

    def __init__(self, message: str = "", *, signal: int) -> None:
        super().__init__(message)
        self.signal = signal


class StopRequests:
    """While entered, takes the signals to this process; one that it was started to ignore stays so.

    Inside `patient`, the first request to stop is only remembered, because the run ends by itself
    soon; the second leaves at once. Elsewhere the first one does, too. A request for a checkpoint
    is always remembered. Outside of the main thread, where Python takes no signals, it changes
    nothing.

        with StopRequests() as stop, stop.patient():
            for record in records:
                if stop.is_requested():
                    break

    Args:
        announce: Called inside the signal handler when a request is remembered, with a message
            for the user.
    """

    def __init__(self, announce: Callable[[str], None] | None = None) -> None:
        self._announce = announce
        self._previous: dict[signal.Signals, Handler] = {}
        self._is_patient = self._is_in_first_step = False
        self._wants_checkpoint = False
        self.signal: int | None = None
        """The first request to stop; None before."""

    def is_requested(self) -> bool:
        """True if a request to stop has arrived."""
        return self.signal is not None

    def wants_checkpoint(self) -> bool:
        """True if a checkpoint was requested since the last `take_checkpoint_request`."""
        return self._wants_checkpoint

    def take_checkpoint_request(self) -> bool:
        """Return whether a checkpoint was requested; clears the request."""
        wanted = self._wants_checkpoint
        self._wants_checkpoint = False
        return wanted

    @contextmanager
    def patient(self) -> Iterator[None]:
        """Remember the first request to stop that arrives inside."""
        self._is_patient = True
        try:
            yield
        finally:
            self._is_patient = False

    def following(self, on_activity: OnActivity) -> OnActivity:
        """Return `on_activity` for a graph whose first gradient step is not waited for.

        Compiling it may take half a minute and loses nothing, for nothing has been learned yet.
        """

        def follow(activity: str) -> None:
            on_activity(activity)
            self._is_in_first_step = is_first_step(activity)
            if self._is_in_first_step and self.signal is not None:
                raise Interrupted(signal=self.signal)

        return follow

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (*STOPS, *SAVES):
                before = signal.getsignal(number)
                is_ours = isinstance(getattr(before, "__self__", None), StopRequests)
                is_taken = number in OF_SCHEDULERS and before is not signal.SIG_DFL and not is_ours
                if before is signal.SIG_IGN or is_taken:  # ignored by `nohup`, for one
                    continue
                handler = self._remember_checkpoint if number in SAVES else self._stop
                self._previous[number] = signal.signal(number, handler)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _stop(self, number: int, _frame: FrameType | None) -> None:
        if number == self.signal == signal.SIGXCPU:  # repeated every second beyond the limit
            return
        is_first = self.signal is None
        self.signal = number
        if not is_first or not self._is_patient or self._is_in_first_step:
            raise Interrupted(signal=number)
        self._notify("stopping after this step and saving; once more stops at once")

    def _remember_checkpoint(self, _number: int, _frame: FrameType | None) -> None:
        self._wants_checkpoint = True
        self._notify("writing a checkpoint after this step")

    def _notify(self, text: str) -> None:
        if self._announce is not None:
            self._announce(text)


def is_first_step(activity: str) -> bool:
    """True for the slow work of a first gradient step: nothing has been learned since the start."""
    return FIRST_STEP in activity
