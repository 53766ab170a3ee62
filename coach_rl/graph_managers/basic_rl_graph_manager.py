"""The usual experiment: one agent, one level, one environment."""

from dataclasses import dataclass, field

from coach_rl.core.agents import AgentParameters
from coach_rl.core.errors import require
from coach_rl.core.interfaces import EnvironmentParameters
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import (
    LevelParameters,
    ScheduleParameters,
    ValidationParameters,
)


@dataclass(frozen=True, kw_only=True)
class BasicGraphParameters:
    """An experiment with one agent."""

    agent: AgentParameters
    """Who learns."""
    environment: EnvironmentParameters
    """Where."""
    schedule: ScheduleParameters = field(default_factory=ScheduleParameters)
    """When what happens."""
    num_envs: int = 1
    """Environments in parallel."""
    evaluation_environment: EnvironmentParameters | None = None
    """What evaluations are played in, with the same spaces; None: the environment of training."""
    validation: ValidationParameters | None = None
    """The acceptance test; None where there is none."""

    def __post_init__(self) -> None:
        require(self.num_envs >= 1, f"num_envs must be 1 or more, got {self.num_envs}")

    @property
    def reward_discount(self) -> float:
        """Nothing is added up where there is one level."""
        return 1.0

    @property
    def levels(self) -> tuple[LevelParameters, ...]:
        """The one level."""
        return (LevelParameters(agent=self.agent),)


class BasicRLGraphManager(GraphManager):
    """A graph manager of one level.

        BasicRLGraphManager(BasicGraphParameters(agent=..., environment=..., num_envs=8))

    Args:
        parameters: The experiment.
    """

    def __init__(self, parameters: BasicGraphParameters) -> None:
        super().__init__(parameters)
