"""Marks: balls and lines drawn into a frame, such as sub-goals and the graph of a planner."""

from collections.abc import Callable
from dataclasses import dataclass

from coach_rl.core.records import FloatArray

Colour = tuple[float, float, float, float]
"""Red, green, blue and opacity, each from 0 to 1."""
Place = tuple[float, float, float]
"""x, y and z in a scene, in its own unit of length."""


GoalPlace = Callable[[FloatArray], Place | None]
"""Function from a goal [G] to its position in a scene; None if it has none."""


@dataclass(frozen=True, kw_only=True)
class Mark:
    """A ball or a line in a scene; it does not affect the simulation."""

    place: Place
    """Position of the ball's centre, or of one end of the line."""
    line_to: Place | None = None
    """The other end of a line; None for a ball."""
    colour: Colour
    """Its colour."""
    size: float | None = None
    """Radius of the ball or the line, in the scene's unit of length; None: what suits the size of
    the scene."""
    label: str = ""
    """Text beside it; empty for none."""
