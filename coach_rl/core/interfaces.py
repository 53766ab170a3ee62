"""Environments, what they draw, and agents' filters: the protocols between the rooms.

environment = parameters.build(num_envs=4)  # a simulator; a level is an environment, too
response = environment.reset(seed=0)
environment.send(Directive(action=actions), response.rows)
response = environment.recv()  # the rows that have answered, possibly none
environment.close()
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from gymnasium import spaces

from coach_rl.core.records import (
    Action,
    Array,
    BoolArray,
    Directive,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
)
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.core.state import Stateful

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


@runtime_checkable
class UnsavedEnvironment(Protocol):
    """An environment that may know beforehand that it can't be saved."""

    @property
    def unsaved(self) -> str | None:
        """Reason why `state_dict` raises a `CheckpointError`; None where it doesn't."""
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


class InputFilter(Stateful, Protocol):
    """An agent's filter of responses: observations and rewards pass it first."""

    @property
    def observation_space(self) -> spaces.Dict:
        """The space of the observations that `observation` returns."""
        ...

    @property
    def changed_keys(self) -> frozenset[str]:
        """Observation keys whose values the filter may change."""
        ...

    @property
    def changes_reward(self) -> bool:
        """True if rewards may be changed."""
        ...

    def new_rows(self, num_rows: int) -> dict[str, Array]:
        """Fresh memory of the filters that remember something per row, e.g. frame stacks.

        Flat names, each array [num_rows, ...]; the caller owns and saves it.
        """
        ...

    def observation(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        learn: bool,
    ) -> Observation:
        """Filter the keys that are given.

        Args:
            memory: What `new_rows` made; the given rows are advanced in place.
            rows: [R].
            observation: [R, ...] each, all keys or some.
            starts: [R] the real episode begins with this observation: forget what the row
                remembers.
            learn: Whether statistics (running means and the like) take these observations in. False
                in TEST.

        Returns:
            New arrays, [R, ...] each; the input is never written to.
        """
        ...

    def reward(
        self,
        memory: dict[str, Array],
        rows: IntArray,
        reward: FloatArray,
        *,
        ends: BoolArray,
        learn: bool,
    ) -> FloatArray:
        """Filter rewards [R]; `ends` [R] marks rewards that end an episode."""
        ...


class OutputFilter(Stateful, Protocol):
    """An agent's filter of actions: they pass it before the environment sees them."""

    @property
    def agent_space(self) -> Space:
        """The action space the agent acts in."""
        ...

    def apply(self, action: Action) -> Action:
        """Map from the agent's space to the environment's, [R, ...]."""
        ...

    def inverse(self, action: Action) -> Action:
        """Map from the environment's space to the agent's; SpaceError if there is no inverse."""
        ...


class InputFilterParameters(Protocol):
    """A frozen description of an InputFilter."""

    def build(self, space: spaces.Dict) -> InputFilter:
        """The filter for an environment that shows `space`; SpaceError when it doesn't fit."""
        ...


class OutputFilterParameters(Protocol):
    """A frozen description of an OutputFilter."""

    def build(self, space: Space) -> OutputFilter:
        """The filter for an environment that takes `space`; SpaceError when it doesn't fit."""
        ...
