"""Telling people what a run is doing while something takes long."""

from collections.abc import Callable

OnActivity = Callable[[str], None]
"""Told what takes long before it begins, and an empty text when it is over."""


def untold(_activity: str) -> None:
    """Nobody is told."""
