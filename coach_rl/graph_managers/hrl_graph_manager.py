"""Experiments with hierarchies: any number of levels, each with an agent of its own."""

from dataclasses import dataclass, field

from coach_rl.core.errors import require
from coach_rl.core.interfaces import EnvironmentParameters
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import (
    LevelParameters,
    ScheduleParameters,
    ValidationParameters,
    check_levels,
)


@dataclass(frozen=True, kw_only=True)
class HRLGraphParameters:
    """An experiment with any number of levels."""

    levels: tuple[LevelParameters, ...]
    """Top first."""
    environment: EnvironmentParameters
    """The simulator under the lowest level."""
    schedule: ScheduleParameters = field(default_factory=ScheduleParameters)
    """When what happens."""
    num_envs: int = 1
    """Environments in parallel."""
    evaluation_environment: EnvironmentParameters | None = None
    """What evaluations are played in, with the same spaces; None: the environment of training."""
    reward_discount: float = 1.0
    """Of rewards per simulator step, where a level adds them up for the one above; one factor for
    all levels, because factors of single levels do not compose."""
    validation: ValidationParameters | None = None
    """The acceptance test; None where there is none."""

    def __post_init__(self) -> None:
        check_levels(self.levels)
        require(self.num_envs >= 1, f"num_envs must be 1 or more, got {self.num_envs}")
        require(
            0 < self.reward_discount <= 1,
            f"reward_discount must lie in (0, 1], got {self.reward_discount}",
        )


class HRLGraphManager(GraphManager):
    """A graph manager of a stack of levels.

        HRLGraphManager(HRLGraphParameters(levels=(top, low), environment=..., num_envs=8))

    Args:
        parameters: The experiment.
    """

    def __init__(self, parameters: HRLGraphParameters) -> None:
        super().__init__(parameters)
