"""A world of random answers in which an agent is tried, and the plays that the checks compare."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces

from coach_rl.core.agents import AgentContext, AgentParameters, AnyAgent, LevelPlace
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.discrete_actions import choice_sizes, mask_key
from coach_rl.core.goals import GOAL_KEY, GoalContext, GoalSpace
from coach_rl.core.levels import DIRECTIVE_KEYS
from coach_rl.core.options import OPTION_KEY
from coach_rl.core.records import (
    ACTION_MASK,
    Action,
    ActionRequest,
    Array,
    BoolArray,
    End,
    FloatArray,
    Observation,
    Outcome,
)
from coach_rl.core.runtime import Runtime
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.core.state import State

ROWS = 3
"""Number of rows that the checks drive."""
EPISODE = 8
"""Mean number of decisions of an episode."""
AFTER = 12
"""Ticks that follow the first update."""


@dataclass(frozen=True, kw_only=True)
class AgentTrial:
    """An agent and the settings of the checks."""

    parameters: AgentParameters
    """The agent; with small settings, so that its first updates come soon."""
    context: AgentContext
    """Its context; see `AgentTrial.of` for an agent that is alone."""
    most_ticks: int = 4_000
    """Ticks within which its first update is expected; where none comes, as with a scripted agent,
    the checks make `AFTER` ticks."""
    greedy: bool = True
    """False for an agent that draws its actions in TEST, too."""
    info: Callable[[int], dict[str, Array]] = field(default=lambda _: {})
    """Infos of the environment for so many rows, [R, ...] each, that the agent reads."""

    @classmethod
    def of(
        cls, parameters: AgentParameters, given: EnvironmentSpaces, **settings: Any
    ) -> "AgentTrial":
        """The trial of an agent that has its environment for itself."""
        return cls(
            parameters=parameters, context=AgentContext(spaces=given, num_envs=ROWS), **settings
        )

    def build(self, *, seed: int = 7, rows: int = ROWS) -> AnyAgent:
        """A fresh agent."""
        runtime = replace(self.context.runtime, seed=seed)
        context = replace(self.context, num_envs=rows, planned_steps=0, runtime=runtime)
        return self.parameters.build(replace(context, place=self._place(runtime)))

    def _place(self, runtime: Runtime) -> LevelPlace:
        """The agent's place, with goals of its own where they learn."""
        place = self.context.place
        goals = place.goal
        level = place.level
        if goals is None or level is None or not goals.learns:
            return place
        seen = self.context.spaces.observation.spaces.items()
        observation = spaces.Dict({key: each for key, each in seen if key not in DIRECTIVE_KEYS})
        context = GoalContext(
            level=level.name, observation=observation, runtime=runtime.for_part("goals")
        )
        return replace(place, level=replace(level, goal_space=goals.build(context)))

    def samples(self, rows: int, number: int) -> Observation:
        """Observations of so many rows, [R, ...] each; others for another number."""
        streams = [np.random.default_rng([13, number, row]) for row in range(rows)]
        return _drawn(self, streams)

    @property
    def mask_key(self) -> str | None:
        """The observation key of the agent's action mask; None where it has none."""
        key = getattr(self.parameters, "action_mask", None)
        given = self.context.spaces
        return mask_key(given.observation, key, self.parameters.name, given.action)

    def play(self, agent: AnyAgent | None = None, **settings: Any) -> "Play":
        """A play of an agent; None for a fresh one."""
        return Play(self, self.build() if agent is None else agent, **settings)

    @cached_property
    def ticks(self) -> int:
        """Ticks of a play in which the agent learns, if it does at all."""
        play = self.play()
        play.heatup()
        for tick in range(self.most_ticks):
            play.tick(Phase.TRAIN)
            if play.training_steps:
                return tick + 1 + AFTER
        return AFTER

    @property
    def trained_goals(self) -> GoalSpace:
        """The goals of its level: those that the trained agent has, if they learn."""
        goals: GoalSpace | None = getattr(self.trained.agent, "goals", None)
        assert self.context.place.goal is not None, "its level has goals"
        return self.context.place.goal if goals is None else goals

    @cached_property
    def trained(self) -> "Play":
        """The play of an agent that has learned; the checks leave it as it is."""
        play = self.play()
        play.heatup()
        return play.train(self.ticks)


Check = Callable[[AgentTrial], None]
"""Raises `ContractViolation` when the promise in its name is broken."""


class Play:
    """An agent at work in a world whose answers don't depend on what it does.

    Row i draws observations, rewards and ends from a stream of its own, whatever the other rows.

    Args:
        trial: The trial.
        agent: The agent.
        rows: Number of rows.
        seed: Seed of the row state; the world has one that is always the same.
    """

    def __init__(
        self, trial: AgentTrial, agent: AnyAgent, *, rows: int = ROWS, seed: int = 3
    ) -> None:
        self.trial = trial
        self.agent = agent
        self.num_rows = rows
        self.rows = agent.new_rows(rows, seed)
        self.training_steps = 0
        self.actions: list[Action] = []
        self.reports: list[Any] = []
        self._streams = [np.random.default_rng([11, row]) for row in range(rows)]
        self._observation = self._drawn()
        self.begins: BoolArray = np.ones(rows, np.bool_)

    def request(self, chosen: Array | None = None, *, greedy: bool = False) -> ActionRequest:
        """The request of all rows, or of these in their order."""
        whole = ActionRequest(
            rows=np.arange(self.num_rows),
            observation={key: values.copy() for key, values in self._observation.items()},
            starts=self.begins.copy(),
            episode_start=self.begins.copy(),
            greedy=np.full(self.num_rows, greedy),
        )
        return whole if chosen is None else whole.rows_of(chosen)

    def act(self, clock: Clock) -> Action:
        """Let all rows decide."""
        action = self.agent.act(self.rows, self.request(), clock)
        self.actions.append(action)
        return action

    def outcome(self) -> Outcome:
        """The answer of the world to all rows; the next request is that of its observations."""
        ends = np.array([stream.random(2) < 1 / (2 * EPISODE) for stream in self._streams])
        held = {key: self._observation[key] for key in DIRECTIVE_KEYS if key in self._observation}
        seen = {**self._drawn(), **held}  # goals and options stay until the (sub-)episode ends
        rewards, reached = self._judged(seen)
        terminated = ends[:, 0] | reached
        truncated = ends[:, 1] & ~terminated
        bits = terminated * np.uint8(End.TERMINATED) | truncated * np.uint8(End.TRUNCATED)
        outcome = Outcome(
            rows=np.arange(self.num_rows),
            observation=seen,
            reward=rewards,
            terminated=terminated,
            truncated=truncated,
            duration=np.ones(self.num_rows, np.int64),
            end=bits.astype(np.uint8),
            below=np.full(self.num_rows, End.GOAL, np.uint8)
            * (self.trial.context.place.below is not None),
            tested=np.zeros(self.num_rows, np.bool_),
            info=self.trial.info(self.num_rows),
        )
        self.begins = terminated | truncated
        fresh = self._drawn()
        self._observation = {
            key: np.where(self.begins.reshape(-1, *[1] * (values.ndim - 1)), fresh[key], values)
            for key, values in seen.items()
        }
        return outcome

    def _judged(self, seen: Observation) -> tuple[FloatArray, BoolArray]:
        """Rewards [R], random ones without goals, and which rows have reached their goal [R]."""
        place = self.trial.context.place
        random = np.array([stream.normal() for stream in self._streams])
        if place.goal is None or place.level is None or GOAL_KEY not in seen:
            return random, np.zeros(self.num_rows, np.bool_)
        verdict = place.goal.verdict(seen[GOAL_KEY], seen)
        return verdict.reward, verdict.reached & place.level.goal_is_terminal

    def tick(self, phase: Phase, *, samples: bool = False) -> Action:
        """Act, observe and, in TRAIN, learn if it is due."""
        clock = self.clock(phase, samples=samples)
        action = self.act(clock)
        self.agent.observe(self.rows, self.outcome(), clock)
        if phase is Phase.TRAIN:
            report = self.agent.train(clock)
            if report is not None:
                self.reports.append(report)
                self.training_steps += report.training_steps
        return action

    def clock(self, phase: Phase, *, samples: bool = False) -> Clock:
        """The clock of the play."""
        return Clock(
            phase=phase,
            environment_steps=len(self.actions) * self.num_rows,
            training_steps=self.training_steps,
            samples=samples,
        )

    def heatup(self, ticks: int = 5) -> "Play":
        """Some ticks of heat-up."""
        for _ in range(ticks):
            self.tick(Phase.HEATUP)
        return self

    def train(self, ticks: int) -> "Play":
        """Some ticks of training."""
        for _ in range(ticks):
            self.tick(Phase.TRAIN)
        return self

    def tested(self, ticks: int = 6, *, samples: bool = False) -> list[Action]:
        """The actions of some ticks of an evaluation."""
        return [self.tick(Phase.TEST, samples=samples) for _ in range(ticks)]

    def state(self) -> State:
        """The agent, its rows, and the play itself."""
        return {
            "agent": self.agent.state_dict(),
            "rows": self.rows.state_dict(),
            "streams": [stream.bit_generator.state for stream in self._streams],
            "observation": {key: values.copy() for key, values in self._observation.items()},
            "begins": self.begins.copy(),
            "counts": [self.training_steps, len(self.actions)],
        }

    def load(self, state: State) -> "Play":
        """Continue from a state of another play; actions begin with the next one."""
        self.agent.load_state_dict(state["agent"])
        self.rows.load_state_dict(state["rows"])
        for stream, saved in zip(self._streams, state["streams"], strict=True):
            stream.bit_generator.state = saved
        self._observation = {key: values.copy() for key, values in state["observation"].items()}
        self.begins = state["begins"].copy()
        self.training_steps, done = state["counts"]
        self.actions = [{}] * done  # only their number is read
        return self

    def _drawn(self) -> Observation:
        return _drawn(self.trial, self._streams)


def _drawn(trial: AgentTrial, streams: list[np.random.Generator]) -> Observation:
    """Observations of rows, each from its stream; masks of actions allow one at least."""
    given = trial.context.spaces
    drawn = {
        key: np.stack([_sample(key, space, stream) for stream in streams])
        for key, space in given.observation.spaces.items()
    }
    for key, values in drawn.items():
        if key == trial.mask_key:
            for row, stream in enumerate(streams):
                _allow_one(values[row].reshape(-1), choice_sizes(given.action), stream)
        elif key.rpartition("/")[2] == ACTION_MASK:  # of a member of a group
            values[...] = 1
    return drawn


def _allow_one(mask: Array, sizes: tuple[int, ...], stream: np.random.Generator) -> None:
    """Make a mask [M] of 0 and 1, and allow an action of each choice."""
    mask[...] = mask > np.median(mask)
    begin = 0
    for size in sizes:
        mask[begin + stream.integers(size)] = 1
        begin += size


def _sample(key: str, space: Space, stream: np.random.Generator) -> Array:
    """An element of an observation space; of an endless Box a normal number each."""
    match space:
        case spaces.Box() if key == OPTION_KEY:
            chosen = np.arange(space.shape[0]) == stream.integers(space.shape[0])
            return np.asarray(chosen, space.dtype)
        case spaces.Box():
            low, high = (np.asarray(each, np.float64) for each in (space.low, space.high))
            bounded = np.isfinite(low) & np.isfinite(high) & (high - low < 1e6)
            share = stream.random(space.shape)
            normal = stream.normal(size=space.shape)
            within = np.where(bounded, low, 0) + share * np.where(bounded, high - low, 1)
            values = np.where(bounded, within, np.clip(normal, low, high))
            return np.asarray(values, space.dtype)
        case spaces.Discrete():
            return np.asarray(space.start + stream.integers(space.n), space.dtype)
        case spaces.MultiDiscrete():
            drawn = np.floor(stream.random(space.shape) * space.nvec).astype(space.dtype)
            return np.asarray(space.start + drawn, space.dtype)
    bits: Array = stream.integers(2, size=space.shape).astype(space.dtype)
    return bits


def parts_of(action: Action) -> dict[str, Array]:
    """The arrays of an action by key; of a plain one under the empty key."""
    return action if isinstance(action, dict) else {"": action}


def same_actions(left: list[Action], right: list[Action], *, nearly: bool = False) -> bool:
    """True if two series of actions are equal to the last bit, or nearly."""
    return len(left) == len(right) and all(
        values.dtype == other.dtype
        and values.shape == other.shape
        and bool(np.allclose(values, other, atol=1e-4) if nearly else (values == other).all())
        for one, two in zip(left, right, strict=True)
        for values, other in zip(parts_of(one).values(), parts_of(two).values(), strict=True)
    )


def frozen_copies(values: Iterator[Array]) -> Callable[[], bool]:
    """A function that returns whether the arrays are unchanged."""
    kept = [(each, each.copy()) for each in values]
    return lambda: all(
        (each == copy).all()
        or (each.dtype.kind == "f" and np.array_equal(each, copy, equal_nan=True))
        for each, copy in kept
    )
