"""Drawings of a row: the scene, goals and marks of the levels, and pictures of their agents."""

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Protocol

import numpy as np

from coach_rl.core.errors import ConfigurationError, RunError
from coach_rl.core.interfaces import Environment, GoalPlace, Mark, MarkRenderable, Renderable
from coach_rl.core.levels import LevelDescription, LevelGoals
from coach_rl.core.records import Array
from coach_rl.telemetry.video import RGB, side_by_side

LEVEL_COLOURS: tuple[RGB, ...] = (
    (230, 60, 50),
    (60, 200, 80),
    (200, 90, 230),
    (255, 150, 40),
    (60, 210, 220),
)
"""Colours of the goals of the levels below the top, the highest first; they repeat."""


class FilmedLevel(Protocol):
    """A level whose goals and marks are drawn."""

    @property
    def name(self) -> str:
        """The level's name."""
        ...

    @property
    def params(self) -> LevelDescription:
        """Its description."""
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

    @property
    def has_picture(self) -> bool:
        """True if its agent has pictures."""
        ...

    def picture(self, row: int) -> Array | None:
        """Its agent's picture of a row, uint8 [H, W, 3]; None where it has none."""
        ...


class FilmedStack(Protocol):
    """Levels, top first, above the environment that is drawn."""

    @property
    def simulators(self) -> Environment:
        """The environment."""
        ...

    @property
    def num_envs(self) -> int:
        """N."""
        ...

    @property
    def levels(self) -> Sequence[FilmedLevel]:
        """The levels."""
        ...

    def path(self, row: int) -> Sequence[FilmedLevel]:
        """The levels that act in a row, top first."""
        ...


class Camera:
    """Draws a row of a stack's environment, with the goals and marks of its levels where it can.

    Pictures of the levels' agents stand at the right of the scene, the top's first.

    Args:
        stack: Whose.
        row: Which.

    Raises:
        ConfigurationError: Neither the environment nor an agent has pictures, or there is no such
            row.
    """

    def __init__(self, stack: FilmedStack, row: int) -> None:
        environment = stack.simulators
        if row >= stack.num_envs:
            raise ConfigurationError(
                f"there is no row {row} to film: there are {stack.num_envs} environments in "
                f"parallel, rows 0 to {stack.num_envs - 1}"
            )
        self._row, self._levels, self._path = row, stack.levels, stack.path
        self._plain = environment if isinstance(environment, Renderable) else None
        self._marking = environment if isinstance(environment, MarkRenderable) else None
        self.has_pictures = bool([level for level in stack.levels if level.has_picture])
        """True if agents have pictures, which are not there before the first decision."""
        self._pictures: list[Array] = []
        if self._plain is None and not self.has_pictures:
            raise ConfigurationError(
                "episodes cannot be filmed or played: the environment has no pictures; leave out "
                "the video flags (-dg, -dm)"
            )

    def scene(self, *, has_goals: bool = False) -> list[Array]:
        """The environment's picture of the current state, and nothing where it has none.

        Before the first decision of an episode there are no goals.
        """
        if self._marking is not None:
            marks = self._marks(self._marking) if has_goals else []
            return [self._marking.render(self._row, marks)]
        return [] if self._plain is None else [self._plain.render(self._row)]

    def frame(self) -> Array:
        """Render the current state after a decision."""
        self._pictures = self._drawn_pictures()
        return side_by_side([*self.scene(has_goals=True), *self._pictures])

    def ended_frame(self) -> Array | None:
        """The end of the episode that the last tick ended; None if it can no longer be drawn.

        The pictures beside it are those of the frame before.
        """
        if self._marking is None:
            return None
        scene = self._marking.render_ended(self._row, self._marks(self._marking))
        return side_by_side([scene, *(self._pictures or self._drawn_pictures())])

    def _drawn_pictures(self) -> list[Array]:
        """The pictures of the levels that have one.

        Raises:
            RunError: One of them is no picture.
        """
        found = []
        for level in self._levels:
            picture = level.picture(self._row)
            if picture is None:
                continue
            if picture.dtype != np.uint8 or picture.ndim != 3 or picture.shape[2] != 3:
                raise RunError(
                    f"the picture of level '{level.name}' must be uint8 [height, width, 3], got "
                    f"{picture.dtype} of shape {picture.shape}"
                )
            found.append(picture)
        return found

    def _marks(self, environment: MarkRenderable) -> list[Mark]:
        marks: list[Mark] = []
        colours = {id(level): level_colour(n) for n, level in enumerate(self._levels[1:])}
        for above, level in pairwise(self._path(self._row)):
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
                red, green, blue = (part / 255 for part in colours[id(level)])
                # Names are drawn on top: readable where a goal lies inside a wall.
                colour = (red, green, blue, 1.0)
                marks.append(Mark(place=place, colour=colour, label=level.name))
        return marks


def level_colour(index: int) -> RGB:
    """The colour of the goals of a level below the top; 0 is the one right below."""
    return LEVEL_COLOURS[index % len(LEVEL_COLOURS)]
