"""Hierarchical actor-critic's experiments (Levy et al. 2019, arXiv:1712.00948)."""

from dataclasses import dataclass, field, replace

from coach_rl.core.errors import require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.interfaces import EnvironmentParameters
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import (
    LevelParameters,
    ScheduleParameters,
    ValidationParameters,
    check_levels,
)


@dataclass(frozen=True, kw_only=True)
class HACGraphParameters:
    """A stack in which every level has goals, and those above the lowest test their sub-goals."""

    stack: tuple[LevelParameters, ...]
    """Top first, each with a horizon. The top level's goal_space says how the environment's goals
    are judged; the others' are what the level above acts in."""
    environment: EnvironmentParameters
    """The simulator under the lowest level; it shows a `desired_goal`."""
    testing_rate: float = 0.3
    """Share of sub-goals that are tested in training, by levels without a testing_rate of their
    own: lambda of the paper."""
    schedule: ScheduleParameters = field(default_factory=ScheduleParameters)
    """When what happens."""
    num_envs: int = 1
    """Environments in parallel."""
    evaluation_environment: EnvironmentParameters | None = None
    """What evaluations are played in, with the same spaces; None: the environment of training."""
    validation: ValidationParameters | None = None
    """The acceptance test; None where there is none."""

    def __post_init__(self) -> None:
        check_levels(self.stack)
        require(self.num_envs >= 1, f"num_envs must be 1 or more, got {self.num_envs}")
        require(
            0 <= self.testing_rate <= 1,
            f"testing_rate must lie in [0, 1], got {self.testing_rate}",
        )
        for level in self.stack:
            require(
                isinstance(level.goal_space, GoalSpace),
                f"level '{level.name}' of a HAC stack needs goals: a GoalSpace as goal_space",
            )
            require(
                level.horizon is not None,
                f"level '{level.name}' of a HAC stack needs a horizon: it bounds its values",
            )

    @property
    def levels(self) -> tuple[LevelParameters, ...]:
        """The stack, testing sub-goals wherever there are any."""
        *upper, lowest = self.stack
        tested = (
            replace(level, testing_rate=self.testing_rate) if level.testing_rate is None else level
            for level in upper
        )
        return (*tested, lowest)

    @property
    def reward_discount(self) -> float:
        """No level learns from rewards that were added up."""
        return 1.0


class HACGraphManager(GraphManager):
    """A graph manager of a HAC stack.

        HACGraphManager(HACGraphParameters(stack=(top, middle, low), environment=...))

    Args:
        parameters: The experiment.
    """

    def __init__(self, parameters: HACGraphParameters) -> None:
        super().__init__(parameters)
