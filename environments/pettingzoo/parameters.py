"""The description of a PettingZoo environment in a preset."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from coach_rl.core.errors import ConfigurationError, require
from coach_rl.core.interfaces import Environment
from coach_rl.core.parameter_class import parameter_class
from coach_rl.environments.gymnasium.block import RowBlock
from coach_rl.environments.gymnasium.environment import Backend, GymnasiumEnvironment, LocalRows
from coach_rl.environments.gymnasium.recipe import (
    Env,
    Recipe,
    Wrapper,
    entry_point,
    guarded,
    imported,
    wrapped,
)
from coach_rl.environments.gymnasium.workers import WorkerPool
from coach_rl.environments.pettingzoo.agents_as_one import AgentsAsOne

MAKER = "parallel_env"
"""What makes an environment in every module of PettingZoo's."""


@parameter_class
class PettingZooParameters:
    """Any parallel environment of PettingZoo's kind: agents by name that act at the same time.

    Its spaces are Dicts by the agents' names, for an `AgentGroup` to give out.
    """

    level: str
    """A module that has a `parallel_env` (`mpe2.simple_spread_v3`), or the `module:Class` of a
    `pettingzoo.ParallelEnv`, or a `module:function` annotated to return one."""
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    """Keyword arguments of the environment, e.g. `{"render_mode": "rgb_array"}`."""
    wrappers: tuple[Wrapper, ...] = ()
    """`module:Class`, or a pair of that and its keyword arguments; applied in this order."""
    max_episode_steps: int | None = None
    """All agents are cut off after this many steps; None leaves the ends to the environment."""
    vectorization: Literal["sync", "subprocess"] = "sync"
    """sync: one row after the other in this process. subprocess: rows spread over workers."""
    processes: int | None = None
    """Number of workers with subprocess; None takes one per core, at most one per row."""
    start_method: Literal["spawn", "forkserver", "fork"] = "spawn"
    """How workers start with subprocess; fork starts fastest, but is unsafe beside threads."""

    def __post_init__(self) -> None:
        require(
            self.max_episode_steps is None or self.max_episode_steps >= 1,
            "PettingZooParameters.max_episode_steps must be 1 or more, or None, "
            f"got {self.max_episode_steps}",
        )
        require(
            self.processes is None or self.processes >= 1,
            f"PettingZooParameters.processes must be 1 or more, or None, got {self.processes}",
        )

    def build(self, *, num_envs: int) -> Environment:
        """A new environment with that many rows.

        Raises:
            ConfigurationError: The level or a wrapper does not exist, lacks a package or fails, or
                it is no parallel environment.
            SpaceError: It shows or takes something that has no array form.
        """
        require(num_envs >= 1, f"num_envs must be 1 or more, got {num_envs}")
        recipe = ParallelRecipe(
            level=self.level,
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


@dataclass(frozen=True, kw_only=True)
class ParallelRecipe(Recipe):
    """All it takes to make one parallel environment; can be sent to another process."""

    def make(self) -> Env:
        """A new environment.

        Raises:
            ConfigurationError: It cannot be made with these arguments, needs a missing package, or
                is not a parallel environment.
        """
        pettingzoo = imported("pettingzoo", kind="environment")
        parallel_env, makes = pettingzoo.ParallelEnv, (pettingzoo.ParallelEnv, pettingzoo.AECEnv)
        name = self.level if ":" in self.level else f"{self.level}:{MAKER}"
        maker = entry_point(name, kind="environment", makes=makes, said_by=(MAKER,))
        made = guarded(maker, what=f"'{self.level}'", **self.kwargs)
        parallel = wrapped(made, self.wrappers, makes=makes)
        if not isinstance(parallel, parallel_env):
            raise ConfigurationError(
                f"'{self.level}' made a {type(parallel).__name__}, not a pettingzoo.ParallelEnv; "
                f"name what makes the parallel form, such as mpe2.simple_spread_v3:{MAKER}, or put "
                "pettingzoo.utils.conversions:turn_based_aec_to_parallel among the wrappers"
            )
        return AgentsAsOne(parallel, level=self.level, max_episode_steps=self.max_episode_steps)
