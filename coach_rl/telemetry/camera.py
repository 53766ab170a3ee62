"""Pictures of a row: the scene, with the goals of the levels and the marks of their agents."""

from collections.abc import Sequence
from functools import partial
from itertools import cycle, pairwise
from typing import Protocol

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.interfaces import Environment, GoalPlace, Mark, MarkRenderable, Renderable
from coach_rl.core.levels import LevelGoals
from coach_rl.core.records import Array

LEVEL_COLOURS = (
    (230, 60, 50),
    (60, 200, 80),
    (200, 90, 230),
    (255, 150, 40),
    (60, 210, 220),
)
"""Red, green and blue of the goals of the levels below the top, the highest first; they repeat."""


class FilmedLevel(Protocol):
    """A level whose goals and marks are drawn."""

    @property
    def name(self) -> str:
        """The level's name."""
        ...

    @property
    def goals(self) -> LevelGoals | None:
        """Its current goals; None where it has none."""
        ...

    def marks(self, row: int, place: GoalPlace) -> Sequence[Mark]:
        """Marks that its agent adds to a frame of a row."""
        ...

    def acting(self, row: int) -> str:
        """Its name, with the member or the option that acted last in a row if it has several."""
        ...


class FilmedStack(Protocol):
    """Levels, top first, above the environment that is drawn."""

    @property
    def simulators(self) -> Environment:
        """The environment."""
        ...

    @property
    def levels(self) -> Sequence[FilmedLevel]:
        """The levels."""
        ...

    def path(self, row: int) -> Sequence[FilmedLevel]:
        """The levels that act in a row, top first."""
        ...


class Camera:
    """Draws a row of a stack's environment, with goals and marks where the environment can.

    Args:
        stack: Whose.
        row: Which.

    Raises:
        ConfigurationError: The environment has no pictures.
    """

    def __init__(self, stack: FilmedStack, row: int) -> None:
        environment = stack.simulators
        if not isinstance(environment, Renderable):
            raise ConfigurationError(
                "episodes cannot be filmed or played: the environment has no pictures; leave out "
                "the video flags (-dg, -dm)"
            )
        self._stack, self._row = stack, row
        self._plain = environment
        self._marking = environment if isinstance(environment, MarkRenderable) else None

    def start(self) -> Array:
        """Render the start of an episode, before its first decision."""
        return self._plain.render(self._row)

    def picture(self) -> Array:
        """Render the current state after a decision, with its goals."""
        if self._marking is None:
            return self._plain.render(self._row)
        return self._marking.render(self._row, self._marks(self._marking))

    def ended(self) -> Array | None:
        """The end of the episode that the last tick ended; None if it can no longer be drawn."""
        if self._marking is None:
            return None
        return self._marking.render_ended(self._row, self._marks(self._marking))

    def _marks(self, environment: MarkRenderable) -> list[Mark]:
        marks: list[Mark] = []
        names = [level.name for level in self._stack.levels[1:]]
        colours = dict(zip(names, cycle(LEVEL_COLOURS), strict=False))
        for above, level in pairwise(self._stack.path(self._row)):
            goals = level.goals
            if goals is None or not goals.given[self._row]:
                continue
            space = goals.goal_space
            place_of = partial(environment.goal_place, space.key, space.elements)
            marks += above.marks(self._row, place_of)
            if space.overridden("achieved"):  # the goal is no place of the scene
                continue
            place = place_of(goals.goal[self._row, : space.size])
            if place is not None:
                red, green, blue = (part / 255 for part in colours[level.name])
                # Names are drawn on top: readable where a goal lies inside a wall.
                colour = (red, green, blue, 1.0)
                marks.append(Mark(place=place, colour=colour, label=level.name))
        return marks
