"""Marks: points drawn into a frame beside what is there, such as the sub-goals of a hierarchy."""

from dataclasses import dataclass

Colour = tuple[float, float, float, float]
"""Red, green, blue and opacity, each from 0 to 1."""
Place = tuple[float, float, float]
"""x, y and z in a scene, in its own unit of length."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A ball in a scene; it takes no part in what is simulated."""

    place: Place
    """Position of its centre."""
    colour: Colour
    """Its colour."""
    size: float | None = None
    """Its radius, in the scene's unit of length; None: what suits the size of the scene."""
    label: str = ""
    """Written beside it; empty for nothing."""
