"""Signals: numbers that an agent or a filter wants to see in the logs.

context.signals.note("q_gap", gap)      # anywhere, as often as you like; a number or an array

What is noted is logged as mean, standard deviation, minimum, maximum and count since the last
report: see docs/record_stream.md.
"""

from collections.abc import Callable
from typing import Any

from numpy.typing import ArrayLike

from coach_rl.core.parts import walk

Listener = Callable[[str, ArrayLike], None]
"""Function that receives a signal's name and values."""


class SignalChannel:
    """Connection from sources of signals to their current listener: training or an evaluation."""

    def __init__(self) -> None:
        self.listener: Listener | None = None
        """The current listener; None: none."""


class Signals:
    """Signals of one agent, at almost no cost without a listener.

    Args:
        channel: Connection to the listener; None: no listener.
        owner: First part of their names, e.g. the name of the agent's level.
    """

    def __init__(self, channel: SignalChannel | None = None, owner: str = "") -> None:
        self.channel = SignalChannel() if channel is None else channel
        self._owner = owner

    @property
    def are_heard(self) -> bool:
        """True if there is a listener; check it before computing values only for signals."""
        return self.channel.listener is not None

    def note(self, name: str, values: Any) -> None:
        """Add values to a signal.

        Args:
            name: The signal's name, e.g. `q_gap`; it is logged as `signals/<level>/q_gap/mean`.
            values: A number, or an array or tensor of any shape, of which every element counts.
                A tensor on a GPU is waited for.
        """
        listener = self.channel.listener
        if listener is None:
            return
        if hasattr(values, "detach"):  # a tensor of torch, which this room does without
            values = values.detach().cpu().numpy()
        listener(f"{self._owner}/{name}" if self._owner else name, values)

    def of(self, part: str) -> "Signals":
        """The same for a part of the owner, e.g. one of several agents on a level."""
        return Signals(self.channel, f"{self._owner}/{part}" if self._owner else part)


SILENT = Signals()
"""Signals without a listener."""


def note_signals(whole: object, signals: Signals) -> None:
    """Connect all parts of an object that have a method `note_to` to `signals`."""
    for part in walk(whole):
        if hasattr(part.value, "note_to"):
            part.value.note_to(signals)
