"""Graphs of HAC levels (Levy et al. 2019, arXiv:1712.00948)."""

from dataclasses import field, replace

from coach_rl.core.errors import require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty, UnitInterval
from coach_rl.extensions.hac.sub_goal_testing import SubGoalTesting
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import GraphParameters, LevelParameters


@parameter_class
class HACGraphParameters(GraphParameters):
    """Hierarchical actor-critic (Levy et al. 2019, arXiv:1712.00948).

    Every level has goals, and those above the lowest test their sub-goals.
    """

    stack: NonEmpty[tuple[LevelParameters, ...]]
    """Top first, each with a horizon. The top level's goal_space defines how the environment's
    goals are judged; the others' are what the level above acts in."""
    testing_rate: UnitInterval = 0.3
    """Share of sub-goals that are tested in training, by levels without a `SubGoalTesting` of their
    own: lambda of the paper."""
    levels: tuple[LevelParameters, ...] = field(init=False, repr=False, compare=False)
    """The stack, with the parts that test."""
    reward_discount: float = field(init=False, default=1.0, repr=False)
    """Discount without effect here: no level learns from rewards that were added up."""

    def __post_init__(self) -> None:
        for level in self.stack:
            require(
                isinstance(level.goal_space, GoalSpace),
                f"level '{level.name}' of a HAC stack needs goals: a GoalSpace as goal_space",
            )
            assert isinstance(level.goal_space, GoalSpace)
            require(
                level.horizon is not None or level.goal_space.ages,
                f"level '{level.name}' of a HAC stack needs a horizon, or goals with a time: that "
                "bounds its values",
            )
        levels = (
            self._tested(level) if below else level
            for level, below in zip(self.stack, self.arrangement.links(self.stack), strict=True)
        )
        object.__setattr__(self, "levels", tuple(levels))
        super().__post_init__()

    def _tested(self, level: LevelParameters) -> LevelParameters:
        """The level, which tests its decisions."""
        if any(isinstance(part, SubGoalTesting) for part in level.parts):
            return level
        return replace(level, parts=(*level.parts, SubGoalTesting(rate=self.testing_rate)))


class HACGraphManager(GraphManager):
    """A graph manager of a HAC stack.

    HACGraphManager(HACGraphParameters(stack=(top, middle, low), environment=...))
    """

    described_by = HACGraphParameters
    parameters: HACGraphParameters
