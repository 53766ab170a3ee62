"""Environments: the protocols between the rooms.

environment = parameters.build(num_envs=4)  # a simulator; a level is an environment, too
response = environment.reset(seed=0)
environment.send(Directive(action=actions), response.rows)
response = environment.recv()  # the rows that have answered, possibly none
environment.close()
"""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from coach_rl.core.marks import Mark, Place
from coach_rl.core.records import Action, Array, Directive, EnvResponse, FloatArray, IntArray
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import Stateful


class Environment(Stateful, Protocol):
    """N rows that take directives and answer with responses: a simulator, or a level.

    A simulator answers for every row it was sent; a level answers for a row when that row's
    sub-episode is over. Sending to a row whose decision is still open raises `ActionError`; a row
    that is not sent anything stays untouched. A simulator resets a row itself when its real episode
    ends. What is open when the state is saved is open when it is loaded.
    """

    @property
    def num_envs(self) -> int:
        """N."""
        ...

    @property
    def spaces(self) -> EnvironmentSpaces:
        """Observation and action space of one row."""
        ...

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Reset every row, dropping open episodes and directives.

        Args:
            seed: An integer gives row i the seed `seed + i`, a sequence gives each row its own,
                None continues with the random streams as they are.

        Returns:
            A response for all rows with `duration` 0.
        """
        ...

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Send directives to some rows; a bare action stands for a Directive, None for all rows."""
        ...

    def recv(self) -> EnvResponse:
        """The rows that have answered since the last call, possibly none."""
        ...

    def close(self) -> None:
        """Release threads, processes and windows; harmless when repeated."""
        ...


@runtime_checkable
class Renderable(Protocol):
    """An environment that can be rendered."""

    def render(self, row: int = 0) -> Array:
        """One frame of a row, uint8 [height, width, 3]."""
        ...


@runtime_checkable
class MarkRenderable(Protocol):
    """An environment that can be rendered with marks in the scene.

    place = environment.goal_place(goal_space.key, goal_space.elements, goal)
    frame = environment.render(0, (Mark(place=place, colour=(1, 0, 0, 0.8)),))
    """

    def render(self, row: int = 0, marks: Sequence[Mark] = ()) -> Array:
        """One frame of a row, uint8 [height, width, 3]; doesn't change the row's state."""
        ...

    def render_ended(self, row: int = 0, marks: Sequence[Mark] = ()) -> Array:
        """Render the last state of the row's previous episode, see `render`.

        Known where `render` drew the row before that episode ended.
        """
        ...

    def goal_place(
        self, key: str, elements: tuple[int, ...] | None, goal: FloatArray
    ) -> Place | None:
        """Return the goal's position in the scene; None if it has none.

        Args:
            key: The observation key that shows what is achieved of the goal.
            elements: Which elements of that key make the goal; None for all of them.
            goal: [G].
        """
        ...


@runtime_checkable
class DrawableParameters(Protocol):
    """Parameters of environments that must know when they are built that they will be drawn."""

    def drawable(self) -> "EnvironmentParameters":
        """The same environments, made so that `render` works."""
        ...


@runtime_checkable
class ProbedParameters(Protocol):
    """Parameters of environments of which some cannot continue from a saved state."""

    def obstacle_to_restoring(self) -> str | None:
        """Return the obstacle to continuing from a saved state; None if none is found.

        May build some to try it, and takes a second or two then.
        """
        ...


@runtime_checkable
class ReplayedEnvironment(Protocol):
    """An environment that loads a state by replaying its open episodes."""

    @property
    def replays_episodes(self) -> bool:
        """True if loading a state takes as many steps as its open episodes have."""
        ...


class EnvironmentParameters(Protocol):
    """A frozen description of an environment."""

    @property
    def level(self) -> str:
        """The task's name."""
        ...

    def build(self, *, num_envs: int) -> Environment:
        """A new environment with that many rows."""
        ...
