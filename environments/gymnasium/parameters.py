"""The description of a Gymnasium environment in a preset."""

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Any, Literal, Self

from coach_rl.core.errors import require
from coach_rl.core.interfaces import Environment
from coach_rl.core.parameter_class import parameter_class
from coach_rl.environments.gymnasium.block import RowBlock
from coach_rl.environments.gymnasium.environment import Backend, GymnasiumEnvironment, LocalRows
from coach_rl.environments.gymnasium.recipe import Wrapper, resolved
from coach_rl.environments.gymnasium.vector import vector_environment
from coach_rl.environments.gymnasium.workers import WorkerPool


@parameter_class
class GymnasiumParameters:
    """Any Gymnasium environment."""

    level: str
    """A registered id (`CartPole-v1`), one that a module registers (`module:Id-v0`), or the
    `module:Class` of an environment, or a `module:function` annotated to return one."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment, e.g. `{"render_mode": "rgb_array"}`."""
    wrappers: tuple[Wrapper, ...] = ()
    """`module:Class`, or a pair of that and its keyword arguments; applied in this order."""
    max_episode_steps: int | None = None
    """Time limit; None keeps the registered one (a class has none); -1: never, as in Gymnasium."""
    vectorization: Literal["sync", "subprocess", "vector"] = "sync"
    """sync: one row after the other in this process, fastest for light environments. subprocess:
    rows spread over worker processes, for environments with slow steps. vector: the level makes a
    ready `gymnasium.vector.VectorEnv` of all rows."""
    processes: int | None = None
    """Number of workers with subprocess; None takes one per core, at most one per row."""
    start_method: Literal["spawn", "forkserver", "fork"] = "spawn"
    """How workers start with subprocess; fork starts fastest, but is unsafe beside threads."""

    def __post_init__(self) -> None:
        limit = self.max_episode_steps
        require(
            limit is None or limit == -1 or limit >= 1,
            "GymnasiumParameters.max_episode_steps must be 1 or more, -1 for never, or None, "
            f"got {limit}",
        )
        require(
            self.processes is None or self.processes >= 1,
            f"GymnasiumParameters.processes must be 1 or more, or None, got {self.processes}",
        )
        require(
            self.vectorization != "vector" or self.max_episode_steps is None,
            "GymnasiumParameters.max_episode_steps cannot be set for a ready vector environment; "
            "give it through kwargs if it has such an argument",
        )

    def drawable(self) -> Self:
        """The same environments with `render_mode="rgb_array"`, where no render mode is given."""
        return replace(self, kwargs={"render_mode": "rgb_array", **self.kwargs})

    def build(self, *, num_envs: int) -> Environment:
        """A new environment with that many rows.

        Raises:
            ConfigurationError: The level or a wrapper does not exist, lacks a package or fails.
            SpaceError: It shows or takes something that has no array form.
        """
        require(num_envs >= 1, f"num_envs must be 1 or more, got {num_envs}")
        if self.vectorization == "vector":
            return vector_environment(
                self.level, kwargs=self.kwargs, wrappers=self.wrappers, num_envs=num_envs
            )
        recipe = resolved(
            self.level,
            kwargs=self.kwargs,
            wrappers=self.wrappers,
            max_episode_steps=self.max_episode_steps,
        )
        backend: Backend
        if self.vectorization == "subprocess":
            backend = WorkerPool(
                recipe,
                num_envs=num_envs,
                processes=self.processes,
                start_method=self.start_method,
            )
        else:
            backend = LocalRows(RowBlock(recipe, range(num_envs)))
        return GymnasiumEnvironment(backend, num_envs=num_envs)
