"""The description of a PettingZoo environment in a preset."""

from dataclasses import dataclass, field
from typing import Literal

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.frozen import thawed
from coach_rl.core.level_name import name_of_class
from coach_rl.core.parameter_classes import ADVICE, parameter_class
from coach_rl.environments.gymnasium.parameters import SingleEnvironmentsParameters
from coach_rl.environments.gymnasium.recipe import (
    Env,
    Recipe,
    entry_point,
    guarded,
    imported,
    wrapped,
)
from coach_rl.environments.pettingzoo.agents_as_one import AgentsAsOne

MAKER = "parallel_env"
"""Name of the function that makes an environment in every module of PettingZoo's."""


@parameter_class
class PettingZooParameters(SingleEnvironmentsParameters):
    """A parallel environment of PettingZoo's kind: agents by name that act at the same time.

    Its spaces are Dicts by the agents' names, for an `AgentGroup` to give out.
    """

    level: str = field(metadata={ADVICE: name_of_class})
    """A module that has a `parallel_env` (`mpe2.simple_spread_v3`), or the `module:Class` of a
    `pettingzoo.ParallelEnv`, or a `module:function` annotated to return one."""
    max_episode_steps: int | None = None
    """All agents are cut off after this many steps; None and -1 leave the ends to the environment.
    """
    vectorization: Literal["sync", "subprocess"] = "sync"
    """sync: one row after the other in this process. subprocess: rows spread over workers."""

    def code_names(self) -> tuple[str, ...]:
        """Return the level, also where it is a module, and wrappers."""
        named = () if ":" in self.level else (f"{self.level}:{MAKER}",)
        return (*named, *super().code_names())

    def recipe(self) -> Recipe:
        """Return the recipe of each row's environment."""
        return ParallelRecipe(
            level=self.level,
            kwargs=self.kwargs,
            wrappers=self.wrappers,
            max_episode_steps=None if self.max_episode_steps == -1 else self.max_episode_steps,
        )


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
        made = guarded(maker, what=f"'{self.level}'", **thawed(self.kwargs))
        parallel = wrapped(made, self.wrappers, makes=makes)
        if not isinstance(parallel, parallel_env):
            raise ConfigurationError(
                f"'{self.level}' made a {type(parallel).__name__}, not a pettingzoo.ParallelEnv; "
                f"name what makes the parallel form, such as mpe2.simple_spread_v3:{MAKER}, or put "
                "pettingzoo.utils.conversions:turn_based_aec_to_parallel among the wrappers"
            )
        return AgentsAsOne(parallel, level=self.level, max_episode_steps=self.max_episode_steps)
