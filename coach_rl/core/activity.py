"""Telling people what a run is doing while something takes long."""

from collections.abc import Callable

OnActivity = Callable[[str], None]
"""Called with what takes long before it begins, and with an empty text when it is over."""


def ignore_activity(_activity: str) -> None:
    """Ignore the activity."""
