"""Requests to stop that all ranks follow after the same step."""

import signal
from types import FrameType
from typing import Any

from coach_rl.sessions.stop_requests import STOPS, StopRequests


class JointStop:
    """Keeps the first request to stop until the ranks have agreed on the step after which to stop.

    A second one is followed at once, and ends the other ranks as an error does.
    """

    def __init__(self) -> None:
        self.requested: int | None = None
        """The signal of the first request; None before."""
        self._handlers: dict[int, Any] = {}
        for number in STOPS:
            handler: Any = signal.getsignal(number)
            if isinstance(getattr(handler, "__self__", None), StopRequests):
                self._handlers[number] = handler
                signal.signal(number, self._keep)

    def follow(self, number: int) -> None:
        """Stop this rank's run after its step, where a rank has a request; 0: none has."""
        if number in self._handlers:
            handler = self._handlers[number]
            self.close()
            handler(number, None)

    def close(self) -> None:
        """Leave the signals to the run."""
        for number, handler in self._handlers.items():
            signal.signal(number, handler)
        self._handlers.clear()

    def _keep(self, number: int, frame: FrameType | None) -> None:
        if self.requested is not None:
            self._handlers[number](number, frame)  # remembers it; the next one leaves at once
            self.close()
        self.requested = number
