"""Descriptions of Gymnasium environments, and a probe of whether they can be restored."""

import random
import re
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field, replace
from typing import Literal, Self

import numpy as np

from coach_rl.configuration.own_classes import name_of_environment
from coach_rl.core.errors import CheckpointError, CoachError, CoachWarning, RunError, require
from coach_rl.core.interfaces import Environment
from coach_rl.core.parameter_classes import ADVICE, CodeNamingParameters, parameter_class
from coach_rl.core.random_actions import actions_from_uniform, uniform_size
from coach_rl.core.ranges import Positive
from coach_rl.core.records import ACTION_MASK, Action, EnvResponse, FloatArray
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.environments.faults import WORKER_SECONDS, FaultParameters, SettingsWatch
from coach_rl.environments.gymnasium.environment import GymnasiumEnvironment
from coach_rl.environments.gymnasium.recipe import Recipe, Wrapper, resolved
from coach_rl.environments.gymnasium.rows import LocalRows
from coach_rl.environments.gymnasium.vector import vector_environment
from coach_rl.environments.gymnasium.workers import TimeLimits, WorkerRows

_REPEATED_ACTIONS = "coach_rl.environments.gymnasium.repeats:RepeatedActions"
_SHOWN_MASKS = "coach_rl.environments.gymnasium.masks:ShownMasks"
_SOURCES = re.compile("(info|method):.+", re.DOTALL)
"""Sources of action masks."""
PROBE_STEPS = 97
"""Steps of each of the probe's five parts; a prime number, which few episodes' lengths divide."""
PROBE_SECONDS = 10.0
"""Time for the probe; an environment so slow that it takes longer is not probed to the end."""
PROBE_SEED = 20
"""Seed of the probe's episodes and actions."""


@parameter_class
class SingleEnvironmentsParameters(CodeNamingParameters):
    """Rows that are single environments, one by one in this process or spread over workers."""

    level: str = field(metadata={ADVICE: name_of_environment})
    """The environment's name."""
    kwargs: Mapping[str, object] = FrozenMapping[str]()
    """Keyword arguments of the environment, e.g. `{"render_mode": "rgb_array"}`."""
    wrappers: tuple[Wrapper, ...] = ()
    """`module:Class`, or a pair of that and its keyword arguments; applied in this order."""
    max_episode_steps: Positive[int] | Literal[-1] | None = None
    """Time limit; None leaves it to the environment."""
    action_mask: str | None = None
    """Source of action masks, which then stand under the observation key `action_mask`: `info:KEY`,
    or `method:NAME` (sb3-contrib's environments: `method:action_masks`). None: masks, if there are
    any, are in the observation."""
    vectorization: str = "sync"
    """sync: one row after the other in this process, fastest for light environments. subprocess:
    rows spread over worker processes, for environments with slow steps."""
    processes: Positive[int] | None = None
    """Number of workers with subprocess; None takes one per core, at most one per row."""
    start_method: Literal["spawn", "forkserver", "fork"] = "spawn"
    """Start method of subprocess workers; fork starts fastest, but is unsafe beside threads."""
    faults: FaultParameters = field(default_factory=FaultParameters)
    """The response to environments that fail."""
    resume: Literal["replay", "restart"] = "replay"
    """Treatment of open episodes in a resumed run. replay: their actions are repeated, which leads
    reproducible environments to the same state; environments that offer their own state load it
    instead. restart: new episodes, for slow environments."""

    def __post_init__(self) -> None:
        for name in ("step_seconds", "reset_seconds"):
            require(
                self.vectorization == "subprocess" or getattr(self.faults, name) is None,
                f"{type(self).__name__}.faults.{name} needs vectorization='subprocess': nothing "
                f"can end a step in this process; got '{self.vectorization}'",
            )
        source = self.action_mask
        require(
            source is None or _SOURCES.fullmatch(source) is not None,
            f"{type(self).__name__}.action_mask must be 'info:KEY' or 'method:NAME', such as "
            f"'info:action_mask' or 'method:action_masks', got {source!r}",
        )
        object.__setattr__(self, "kwargs", FrozenMapping(self.kwargs))
        object.__setattr__(self, "wrappers", tuple(map(_frozen_wrapper, self.wrappers)))

    def code_names(self) -> tuple[str, ...]:
        """The level and wrappers, and names in their arguments."""
        return tuple(_names_in([self.level, self.kwargs, self.wrappers]))

    def drawable(self) -> Self:
        """The same environments with `render_mode="rgb_array"`, where no render mode is given."""
        return replace(self, kwargs={"render_mode": "rgb_array", **self.kwargs})

    @abstractmethod
    def recipe(self) -> Recipe:
        """The recipe of each row's environment; builds nothing."""

    def build(self, *, num_envs: int) -> Environment:
        """A new environment with that many rows.

        Raises:
            ConfigurationError: The level or a wrapper does not exist, lacks a package or fails.
            SpaceError: Its observations or actions have no array form.
        """
        require(num_envs >= 1, f"num_envs must be 1 or more, got {num_envs}")
        rows: LocalRows | WorkerRows
        unsaved = self._unsaved
        if self.vectorization == "subprocess":
            rows = WorkerRows(
                self.recipe(),
                num_envs=num_envs,
                processes=self.processes,
                start_method=self.start_method,
                limits=TimeLimits(
                    self.faults.step_seconds or WORKER_SECONDS,
                    self.faults.reset_seconds or WORKER_SECONDS,
                ),
                keeps_actions=unsaved is None,
            )
        else:
            with SettingsWatch(self.level, with_device=True):
                rows = LocalRows(self.recipe(), range(num_envs), keeps_actions=unsaved is None)
        return GymnasiumEnvironment(
            rows, num_envs=num_envs, level=self.level, faults=self.faults, unsaved=unsaved
        )

    def obstacle_to_restoring(self) -> str | None:
        """Reason why open episodes can't be replayed; None if none is found."""
        return self._unsaved or _obstacle_to_restoring(lambda: self.build(num_envs=1))

    @property
    def _unsaved(self) -> str | None:
        """Reason why rows can't be saved; None if they can."""
        return f"{type(self).__name__}.resume is 'restart'" if self.resume == "restart" else None


@parameter_class
class GymnasiumParameters(SingleEnvironmentsParameters):
    """Environments of Gymnasium's kind."""

    level: str = field(metadata={ADVICE: name_of_environment})
    """A registered id (`CartPole-v1`), one that a module registers (`module:Id-v0`), or the
    `module:Class` of an environment, or a `module:function` annotated to return one."""
    max_episode_steps: Positive[int] | Literal[-1] | None = None
    """Time limit; None keeps the registered one (a class has none); -1: never, as in Gymnasium."""
    action_repeat: Positive[int] = 1
    """Steps of the environment in a step here, all with the same action; rewards are summed. An end
    stops them, and so does the observation's `action_mask` where it forbids the action. Environment
    steps are those here, of duration 1; a time limit counts the environment's own."""
    vectorization: Literal["sync", "subprocess", "vector"] = "sync"
    """sync: one row after the other in this process, fastest for light environments. subprocess:
    rows spread over worker processes, for environments with slow steps. vector: the level makes a
    ready `gymnasium.vector.VectorEnv` of all rows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        given = "give it through kwargs if it has such an argument"
        shown = "let it show masks under the observation key 'action_mask'"
        own = (("max_episode_steps", None, given), ("action_repeat", 1, given))
        for name, unset, advice in (*own, ("action_mask", None, shown)):
            require(
                self.vectorization != "vector" or getattr(self, name) == unset,
                f"GymnasiumParameters.{name} cannot be set for a ready vector environment; "
                f"{advice}",
            )
        require(
            self.action_repeat == 1 or self.action_mask is None,
            "GymnasiumParameters.action_repeat repeats actions, which action_mask may forbid then; "
            "leave one of them out, or let the environment show its mask in the observation, under "
            f"'{ACTION_MASK}': a repetition ends where that forbids the action",
        )

    def recipe(self) -> Recipe:
        repeats: tuple[Wrapper, ...] = ()
        if self.action_repeat > 1:
            repeats = ((_REPEATED_ACTIONS, FrozenMapping({"count": self.action_repeat})),)
        shown: tuple[Wrapper, ...] = ()
        if self.action_mask is not None:
            shown = ((_SHOWN_MASKS, FrozenMapping({"source": self.action_mask})),)
        return resolved(
            self.level,
            kwargs=self.kwargs,
            wrappers=(*repeats, *self.wrappers, *shown),
            max_episode_steps=self.max_episode_steps,
        )

    def build(self, *, num_envs: int) -> Environment:
        if self.vectorization != "vector":
            return super().build(num_envs=num_envs)
        require(num_envs >= 1, f"num_envs must be 1 or more, got {num_envs}")
        with SettingsWatch(self.level, with_device=True):
            return vector_environment(
                self.level, kwargs=self.kwargs, wrappers=self.wrappers, num_envs=num_envs
            )


def _frozen_wrapper(wrapper: Wrapper) -> Wrapper:
    return wrapper if isinstance(wrapper, str) else (wrapper[0], FrozenMapping(wrapper[1]))


def _names_in(value: object) -> Iterator[str]:
    """Every text in a description that may name code, as `module:name`."""
    match value:
        case str():
            if ":" in value:
                yield value
        case Mapping():
            yield from _names_in(list(value.values()))
        case list() | tuple():
            for part in value:
                yield from _names_in(part)


def _obstacle_to_restoring(build: Callable[[], Environment]) -> str | None:
    """Reason why a simulator can't be restored by replaying its actions; None if none is found.

    One copy plays, starts another episode and is saved in the middle of one, unless none is longer
    than a step. A second copy loads that state, and both continue in turns with the same actions:
    an environment with randomness of its own, or with state that survives a reset, diverges. The
    probe has a fixed number of steps, so it does not find everything, and nothing in environments
    whose steps take 20 ms or more. Random streams of the process are restored, and warnings about
    faults are left to the run.

    Args:
        build: Makes a copy of one row; called twice.
    """
    with _global_streams_kept(), warnings.catch_warnings():
        warnings.simplefilter("ignore", CoachWarning)
        one, other = build(), build()
        try:
            return _probed(one, other)
        finally:
            one.close()
            other.close()


def _probed(one: Environment, other: Environment) -> str | None:
    numbers = _probe_numbers(one)
    try:
        answer = one.reset(seed=PROBE_SEED)
        for _ in range(PROBE_STEPS):
            answer = _probe_step(one, _probe_action(one, numbers, answer))
        answer = one.reset()
        for step in range(1, 2 * PROBE_STEPS):
            answer = _probe_step(one, _probe_action(one, numbers, answer))
            if step >= PROBE_STEPS and not answer.end.any():
                break
        state = one.state_dict()
    except CoachError:
        return None  # the run reports such errors itself
    try:
        other.load_state_dict(state)
        for _ in range(PROBE_STEPS):
            action = _probe_action(one, numbers, answer)
            answer = _probe_step(one, action)
            if not _agree(answer, _probe_step(other, action)):
                return (
                    "the environment is not reproducible: replayed to where it was saved, it went "
                    "on differently; it (or a wrapper) uses randomness besides self.np_random, or "
                    "carries something over from earlier episodes"
                )
    except CheckpointError as error:
        return str(error)
    except CoachError:
        return None
    return None


def _probe_numbers(environment: Environment) -> Iterator[FloatArray]:
    size = uniform_size(environment.spaces.action)
    rng = np.random.default_rng(PROBE_SEED)
    deadline = time.monotonic() + PROBE_SECONDS
    while time.monotonic() < deadline:
        yield rng.random((1, size))
    raise RunError("the environment is too slow to be probed")


def _probe_action(
    environment: Environment, numbers: Iterator[FloatArray], answer: EnvResponse
) -> Action:
    """A random action for the state that an answer shows, allowed by its mask if it has one."""
    space = environment.spaces.action
    allowed = answer.first_observation.get(ACTION_MASK)
    return actions_from_uniform(space, next(numbers), None if allowed is None else allowed > 0)


def _probe_step(environment: Environment, action: Action) -> EnvResponse:
    environment.send(action)
    return environment.recv()


def _agree(one: EnvResponse, other: EnvResponse) -> bool:
    """Return whether two answers agree in observations, rewards and ends."""
    pairs = [(one.reward, other.reward), (one.end, other.end)]
    for mine, theirs in (
        (one.observation, other.observation),
        (one.first_observation, other.first_observation),
    ):
        pairs += [(values, theirs[key]) for key, values in mine.items()]
    return all(left.tobytes() == right.tobytes() for left, right in pairs)


@contextmanager
def _global_streams_kept() -> Iterator[None]:
    """A context that restores the process's own random streams, which a preset may have seeded."""
    python, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002 - the user's stream
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(legacy)  # noqa: NPY002 - the user's stream
