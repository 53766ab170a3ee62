"""Give an agent a choice of some of the environment's actions."""

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import Space
from coach_rl.filters.action.target_table import TargetAction, table_stage, target_array
from coach_rl.filters.stages import StatelessActionStage


@parameter_class
class PartialDiscreteActionSpaceMap:
    """The agent's action i is `target_actions[i]`; all other actions are out of reach.

    The environment may take Discrete, MultiDiscrete, MultiBinary or Box actions. The way back goes
    to the same action, in a Box of floats to the nearest one.
    """

    target_actions: tuple[TargetAction, ...]
    """The environment's actions, no two alike: numbers, or tuples in the shape of its space."""

    def __post_init__(self) -> None:
        require(
            len(self.target_actions) > 0,
            "PartialDiscreteActionSpaceMap.target_actions needs one action or more, got none",
        )

    def build(self, space: Space) -> StatelessActionStage:
        """Build the filter for a space that contains every target action."""
        owner = "PartialDiscreteActionSpaceMap"
        return table_stage(owner, target_array(owner, self.target_actions, space))
