"""The description of a Gymnasium environment in a preset."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import field, replace
from typing import Literal, Self

from coach_rl.core.errors import require
from coach_rl.core.frozen import FrozenMapping
from coach_rl.core.interfaces import Environment
from coach_rl.core.level_name import name_of_class
from coach_rl.core.parameter_classes import ADVICE, parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.roles import CodeNamingParameters
from coach_rl.environments.faults import WORKER_SECONDS, FaultParameters
from coach_rl.environments.gymnasium.environment import GymnasiumEnvironment
from coach_rl.environments.gymnasium.probing import obstacle_to_restoring
from coach_rl.environments.gymnasium.recipe import Recipe, Wrapper, resolved
from coach_rl.environments.gymnasium.rows import LocalRows
from coach_rl.environments.gymnasium.vector import vector_environment
from coach_rl.environments.gymnasium.workers import TimeLimits, WorkerRows
from coach_rl.environments.process_settings import SettingsWatch


@parameter_class
class SingleEnvironmentsParameters(CodeNamingParameters):
    """Rows that are single environments, one by one in this process or spread over workers."""

    level: str = field(metadata={ADVICE: name_of_class})
    """The environment's name."""
    kwargs: Mapping[str, object] = FrozenMapping[str]()
    """Keyword arguments of the environment, e.g. `{"render_mode": "rgb_array"}`."""
    wrappers: tuple[Wrapper, ...] = ()
    """`module:Class`, or a pair of that and its keyword arguments; applied in this order."""
    max_episode_steps: Positive[int] | Literal[-1] | None = None
    """Time limit; None leaves it to the environment."""
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
    """Treatment of open episodes in a resumed run. replay: they are led back to where they stood,
    step by step, as far as the environment can be. restart: they begin anew, for slow ones."""

    def __post_init__(self) -> None:
        for name in ("step_seconds", "reset_seconds"):
            require(
                self.vectorization == "subprocess" or getattr(self.faults, name) is None,
                f"{type(self).__name__}.faults.{name} needs vectorization='subprocess': nothing "
                f"can end a step in this process; got '{self.vectorization}'",
            )
        object.__setattr__(self, "kwargs", FrozenMapping(self.kwargs))
        object.__setattr__(self, "wrappers", tuple(map(_frozen_wrapper, self.wrappers)))

    def code_names(self) -> tuple[str, ...]:
        """Return the level and wrappers; some environments take names of others, too."""
        return tuple(_names_in([self.level, self.kwargs, self.wrappers]))

    @abstractmethod
    def recipe(self) -> Recipe:
        """Return the recipe of each row's environment; builds nothing."""

    def build(self, *, num_envs: int) -> Environment:
        """A new environment with that many rows.

        Raises:
            ConfigurationError: The level or a wrapper does not exist, lacks a package or fails.
            SpaceError: It shows or takes something that has no array form.
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
        """Return what keeps open episodes from being replayed; None if nothing is found."""
        return self._unsaved or obstacle_to_restoring(lambda: self.build(num_envs=1))

    @property
    def _unsaved(self) -> str | None:
        """Reason why rows remember nothing that could be saved; None where they do."""
        return f"{type(self).__name__}.resume is 'restart'" if self.resume == "restart" else None


@parameter_class
class GymnasiumParameters(SingleEnvironmentsParameters):
    """Environments of Gymnasium's kind."""

    level: str = field(metadata={ADVICE: name_of_class})
    """A registered id (`CartPole-v1`), one that a module registers (`module:Id-v0`), or the
    `module:Class` of an environment, or a `module:function` annotated to return one."""
    max_episode_steps: Positive[int] | Literal[-1] | None = None
    """Time limit; None keeps the registered one (a class has none); -1: never, as in Gymnasium."""
    vectorization: Literal["sync", "subprocess", "vector"] = "sync"
    """sync: one row after the other in this process, fastest for light environments. subprocess:
    rows spread over worker processes, for environments with slow steps. vector: the level makes a
    ready `gymnasium.vector.VectorEnv` of all rows."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.vectorization != "vector" or self.max_episode_steps is None,
            "GymnasiumParameters.max_episode_steps cannot be set for a ready vector environment; "
            "give it through kwargs if it has such an argument",
        )

    def drawable(self) -> Self:
        """The same environments with `render_mode="rgb_array"`, where no render mode is given."""
        return replace(self, kwargs={"render_mode": "rgb_array", **self.kwargs})

    def recipe(self) -> Recipe:
        """Return the recipe of each row's environment; see `resolved`."""
        return resolved(
            self.level,
            kwargs=self.kwargs,
            wrappers=self.wrappers,
            max_episode_steps=self.max_episode_steps,
        )

    def build(self, *, num_envs: int) -> Environment:
        """A new environment with that many rows; see `SingleEnvironmentsParameters.build`."""
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
