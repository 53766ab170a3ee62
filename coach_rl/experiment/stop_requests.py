"""Stopping gracefully: Ctrl-C and SIGTERM as a wish that is granted between two log records."""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Self

Handler = Callable[[int, FrameType | None], object] | int | None
"""A handler of signals, as `signal.signal` takes and returns it."""


class StopRequests:
    """While entered, the first SIGINT or SIGTERM is only remembered; the second stops at once.

    Outside of the main thread, where Python takes no signals, it changes nothing.

        with StopRequests() as stop:
            for record in records:
                if stop.signal is not None:
                    break

    Args:
        announce: Called inside the signal handler when the first wish arrives, with what to tell
            the user.
    """

    _SIGNALS = (signal.SIGINT, signal.SIGTERM)

    def __init__(self, announce: Callable[[str], None] | None = None) -> None:
        self._announce = announce
        self._previous: dict[signal.Signals, Handler] = {}
        self.signal: int | None = None

    def is_requested(self) -> bool:
        """True if the first request has arrived."""
        return self.signal is not None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in self._SIGNALS:
                self._previous[number] = signal.signal(number, self._remember)
        return self

    def __exit__(self, *exception: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous.clear()

    def _remember(self, number: int, _frame: FrameType | None) -> None:
        if self.signal is not None:
            raise KeyboardInterrupt
        self.signal = number
        if self._announce is not None:
            self._announce("stopping after this step and saving; once more stops at once")
