"""Who does what: the protocols between the rooms.

environment = parameters.build(num_envs=4)  # a simulator; a level is an environment, too
response = environment.reset(seed=0)
environment.send(Directive(action=actions), response.rows)
response = environment.recv()  # the rows that have answered, possibly none
environment.close()
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from gymnasium import spaces

from coach_rl.core.clock import Clock
from coach_rl.core.goals import GoalSpace
from coach_rl.core.levels import LevelDescription
from coach_rl.core.marks import Mark, Place
from coach_rl.core.records import (
    Action,
    Array,
    BoolArray,
    Directive,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
    Outcome,
    TrainingReport,
)
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.core.state import State


class Stateful(Protocol):
    """Anything that must be saved to go on exactly where it stopped."""

    def state_dict(self) -> State:
        """Everything mutable, as a `State` tree that shares no memory with the object."""
        ...

    def load_state_dict(self, state: State) -> None:
        """Take over a state made by `state_dict` of an equally built object."""
        ...


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
        """What one row shows and takes."""
        ...

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Start every row anew and drop what is open.

        Args:
            seed: An integer gives row i the seed `seed + i`, a sequence gives each row its own,
                None goes on with the random streams as they are.

        Returns:
            A response for all rows with `duration` 0.
        """
        ...

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Tell some rows what to do; a bare action stands for a Directive, None for all rows."""
        ...

    def recv(self) -> EnvResponse:
        """The rows that have answered since the last call, possibly none."""
        ...

    def close(self) -> None:
        """Release threads, processes and windows; harmless when repeated."""
        ...


@runtime_checkable
class Renderable(Protocol):
    """An environment that can be looked at."""

    def render(self, row: int = 0) -> Array:
        """One frame of a row, uint8 [height, width, 3]."""
        ...


@runtime_checkable
class MarkRenderable(Protocol):
    """An environment that can be looked at, with marks drawn into the scene.

    place = environment.goal_place(goal_space.key, goal_space.elements, goal)
    frame = environment.render(0, (Mark(place=place, colour=(1, 0, 0, 0.8)),))
    """

    def render(self, row: int = 0, marks: Sequence[Mark] = ()) -> Array:
        """One frame of a row, uint8 [height, width, 3]; changes nothing in the row's life."""
        ...

    def render_ended(self, row: int = 0, marks: Sequence[Mark] = ()) -> Array:
        """As `render`, of the last state of the row's last episode, which it has left.

        Known where `render` drew the row before that episode ended.
        """
        ...

    def goal_place(
        self, key: str, elements: tuple[int, ...] | None, goal: FloatArray
    ) -> Place | None:
        """Where a goal lies in the scene; None where that cannot be said.

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
    """What an agent does to responses before it sees them."""

    @property
    def observation_space(self) -> spaces.Dict:
        """What comes out of `observation`."""
        ...

    @property
    def changed_keys(self) -> frozenset[str]:
        """Observation keys whose values may come out other than they go in."""
        ...

    @property
    def changes_reward(self) -> bool:
        """Whether rewards may come out other than they go in."""
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
            memory: What `new_rows` made; the rows spoken of are advanced in place.
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
        """Filter rewards [R]; `ends` [R] says where the episode is over after this reward."""
        ...


class OutputFilter(Stateful, Protocol):
    """What an agent does to its actions before the environment sees them."""

    @property
    def agent_space(self) -> Space:
        """Where the agent acts."""
        ...

    def apply(self, action: Action) -> Action:
        """From the agent's space to the environment's, [R, ...]."""
        ...

    def inverse(self, action: Action) -> Action:
        """From the environment's space to the agent's; SpaceError where the map has no inverse."""
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


class RowState(Stateful, Protocol):
    """What an agent remembers per row: pending observation, noise, hidden state, last choice."""


class Agent(Stateful, Protocol):
    """Chooses actions, keeps what came of them, learns from it.

    info = agent.act(row_state, rows, observation, starts=..., fresh=..., quiet=..., clock=clock)
    ...                                                     # the environment answers
    agent.observe(row_state, outcome, clock=clock)
    report = agent.train(clock)
    """

    def new_rows(self, num_envs: int, seed: int) -> Any:
        """A fresh `RowState` for a stack of that size; row i draws from the stream (seed, i)."""
        ...

    def act(
        self,
        row_state: Any,
        rows: IntArray,
        observation: Observation,
        *,
        starts: BoolArray,
        fresh: BoolArray,
        quiet: BoolArray,
        clock: Clock,
    ) -> Action:
        """Choose for these rows, keep the choice in the row state.

        Args:
            row_state: What `new_rows` made.
            rows: [R].
            observation: [R, ...] each, with this level's goal in it.
            starts: [R] the first decision of a (sub-)episode.
            fresh: [R] the first decision of a real episode (then `starts` is true as well).
            quiet: [R] no exploration: the decision is tested.
            clock: Phase and counters of the calling stack.

        Returns:
            The action for the environment, through clipping and the OutputFilter.
        """
        ...

    def observe(self, row_state: Any, outcome: Outcome, *, clock: Clock) -> None:
        """Take in what the last decisions led to: a transition each, stored unless in TEST."""
        ...

    def train(self, clock: Clock) -> TrainingReport | None:
        """Learn if it is due; None when nothing was due."""
        ...

    def load_policy(self, state: State) -> None:
        """Start from what an equal agent knew elsewhere.

        Networks, those of targets included, and the statistics of filters and normalisers are taken
        over; memory, counters and optimisers stay as they are.

        Args:
            state: What that agent's `state_dict` returned.

        Raises:
            SpaceError: It is another kind of agent, or its networks have other shapes.
        """
        ...

    def description(self) -> str:
        """What it consists of, for people; may have several lines."""
        ...


@dataclass(frozen=True, kw_only=True)
class LevelPlace:
    """Where in a stack an agent decides. The defaults: alone, told nothing."""

    level: LevelDescription | None = None
    """Its own level."""
    below: LevelDescription | None = None
    """The level that its decisions are sent to; None for the simulator."""
    agent_below: "Agent | None" = None
    """Who decides there."""

    def owner(self, agent: str) -> str:
        """An agent of that name at this place, for messages: "agent 'ppo' of level 'main'"."""
        of = "" if self.level is None else f" of level '{self.level.name}'"
        return f"agent '{agent}'{of}"

    @property
    def goal(self) -> GoalSpace | None:
        """The goals by which it is rewarded; None where the environment rewards it."""
        space = None if self.level is None else self.level.goal_space
        return space if isinstance(space, GoalSpace) else None

    @property
    def sub_goal(self) -> GoalSpace | None:
        """The goals it sends to the level below; None for options and actions of the simulator."""
        space = None if self.below is None else self.below.goal_space
        return space if isinstance(space, GoalSpace) else None


ALONE = LevelPlace()
"""The place of an agent that is told nothing and sends its decisions to the simulator."""


class AgentParameters(Protocol):
    """A frozen description of an agent."""

    @property
    def name(self) -> str:
        """The agent's name in logs and paths."""
        ...

    def build(
        self,
        *,
        spaces: EnvironmentSpaces,
        num_envs: int,
        device: str,
        seed: int,
        planned_steps: int,
        place: LevelPlace = ALONE,
    ) -> Agent:
        """The agent; SpaceError when it can't serve what its level sees and takes.

        Args:
            spaces: What its level sees and takes.
            num_envs: N of the stack it trains in.
            device: Where networks live.
            seed: Of everything random in it.
            planned_steps: Decisions it is sure to make in the whole run, over all rows.
            place: Where in the stack it decides.
        """
        ...
