"""Signals that this system has; Windows has few of those that end and steer runs elsewhere."""

import signal


def signals_of(*names: str) -> tuple[signal.Signals, ...]:
    """The signals of these names, such as `SIGHUP`, that the system has."""
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))
