"""Pictures of a row: the scene, with goals of levels and marks of their agents, and agents' own."""

from collections.abc import Sequence
from functools import partial
from itertools import cycle, pairwise
from typing import Protocol, runtime_checkable

import numpy as np

from coach_rl.core.agents import DrawnAgent, Held, NamedDecisions
from coach_rl.core.errors import ConfigurationError, RunError, in_one_line
from coach_rl.core.goals import GoalSpace, takes
from coach_rl.core.interfaces import GoalPlace, Mark, MarkRenderable, Renderable
from coach_rl.core.options import OptionSpace
from coach_rl.core.records import Array, Observation
from coach_rl.graph_managers.stack import Stack
from coach_rl.levels.level_manager import LevelManager

LEVEL_COLOURS = (
    (230, 60, 50),
    (60, 200, 80),
    (200, 90, 230),
    (255, 150, 40),
    (60, 210, 220),
)
"""Red, green and blue of the goals of the levels below the top, the highest first; they repeat."""


@runtime_checkable
class PicturedAgent(Protocol[Held]):
    """An agent with a picture of its own, which films show at the right of the scene."""

    def picture(self, row_state: Held, row: int, observation: Observation) -> Array:
        """Return a row's picture, uint8 [height, width, 3], of one size; first after a decision.

        The observation is of that row alone, unfiltered, as its level shows it, [1, ...] each.
        """
        ...


class Camera:
    """Draws a row of a stack's environment, with goals and marks where the environment can.

    Args:
        stack: Whose.
        row: Which.

    Raises:
        ConfigurationError: There are no pictures, or an agent's method `picture` doesn't fit.
    """

    def __init__(self, stack: Stack, row: int) -> None:
        environment = stack.simulators
        self._pictured = [
            (level, level.agent) for level in stack.levels if isinstance(level.agent, PicturedAgent)
        ]
        if not (isinstance(environment, Renderable) or self._pictured):
            raise ConfigurationError(
                "episodes cannot be filmed or played: the environment has no pictures; leave out "
                "the video flags (-dg, -dm)"
            )
        self._stack = stack
        self._row = row
        for level, agent in self._pictured:
            if not takes(agent.picture, 3):
                raise ConfigurationError(
                    f"level '{level.name}': write {type(agent).__name__}.picture(self, row_state, "
                    "row, observation); the last is the row's, unfiltered, [1, ...] each"
                )
        self._plain = environment if isinstance(environment, Renderable) else None
        self._marking = environment if isinstance(environment, MarkRenderable) else None
        self._beside: list[Array] = []  # pictures of agents in the newest frame

    def start(self) -> Array | None:
        """Render the start of an episode; None if agents have pictures, as none has decided yet."""
        self._beside = []
        scene = None if self._plain is None else self._plain.render(self._row)
        return None if self._pictured else scene

    def picture(self) -> Array:
        """Render the current state after a decision, with its goals."""
        self._beside = self._pictures()
        if self._marking is not None:
            scenes = [self._marking.render(self._row, self._marks(self._marking))]
        else:
            scenes = [] if self._plain is None else [self._plain.render(self._row)]
        return _side_by_side([*scenes, *self._beside])

    def ended(self) -> Array | None:
        """The end of the episode that the last tick ended; None if it can no longer be drawn."""
        if self._marking is None:
            return None
        scene = self._marking.render_ended(self._row, self._marks(self._marking))
        return _side_by_side([scene, *(self._beside or self._pictures())])  # of the frame before

    def _pictures(self) -> list[Array]:
        """The agents' pictures; RunError if a method fails or returns anything else."""
        pictures = []
        for level, agent in self._pictured:
            observation = level.shown(np.array([self._row]))
            try:
                picture = np.asarray(agent.picture(level.agent_rows, self._row, observation))
                if picture.dtype != np.uint8 or picture.shape[2:] != (3,) or not picture.size:
                    found = f"{picture.dtype} of shape {picture.shape}"
                    raise ValueError(f"it must return uint8 [height, width, 3], got {found}")
            except Exception as error:
                name = f"level '{level.name}': {type(agent).__name__}.picture"
                raise RunError(f"{name} failed: {in_one_line(error)}") from error
            pictures.append(picture)
        return pictures

    def _marks(self, environment: MarkRenderable) -> list[Mark]:
        marks: list[Mark] = []
        names = [level.name for level in self._stack.levels[1:]]
        colours = dict(zip(names, cycle(LEVEL_COLOURS), strict=False))
        for above, level in pairwise(self._stack.path(self._row)):
            space = level.params.goal_space
            rows = level.rows
            is_given = rows.open[self._row] or rows.decisions[self._row] > 0
            if not isinstance(space, GoalSpace) or not is_given:
                continue
            place_of = partial(environment.goal_place, space.key, space.elements)
            marks += marks_of(above, self._row, place_of)
            if space.overridden("achieved"):  # the goal is no place of the scene
                continue
            place = place_of(rows.goal[self._row, : space.size])
            if place is not None:
                red, green, blue = (part / 255 for part in colours[level.name])
                # Names are drawn on top: readable where a goal lies inside a wall.
                colour = (red, green, blue, 1.0)
                marks.append(Mark(place=place, colour=colour, label=level.name))
        return marks


def marks_of(level: LevelManager, row: int, place: GoalPlace) -> Sequence[Mark]:
    """Marks that a level's agent adds to a frame of a row; see `core.agents.DrawnAgent`.

    Raises:
        RunError: The agent's method failed.
    """
    agent = level.agent
    if not isinstance(agent, DrawnAgent):
        return ()
    try:
        return agent.marks(level.agent_rows, row, place)
    except Exception as error:
        name = f"level '{level.name}': {type(agent).__name__}.marks"
        raise RunError(f"{name} failed: {in_one_line(error)}") from error


def acting_of(level: LevelManager, row: int) -> str:
    """The level's name, with what its agent names, or the option that acts in a row."""
    agent = level.agent
    if isinstance(agent, NamedDecisions):
        return f"{level.name}/{agent.acting(level.agent_rows, row)}"
    if isinstance(level.params.goal_space, OptionSpace):
        return f"{level.name}/option {level.rows.goal[row].argmax()}"
    return level.name


def _side_by_side(pictures: Sequence[Array]) -> Array:
    """Pictures [height, width, 3] in one, from left to right; black below the lower ones."""
    height = max(len(picture) for picture in pictures)
    return np.hstack([np.pad(each, ((0, height - len(each)), (0, 0), (0, 0))) for each in pictures])
