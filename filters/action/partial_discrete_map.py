"""Give an agent a choice of some of the environment's actions."""

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonEmpty
from coach_rl.core.spaces import Space
from coach_rl.filters.action.target_table import TargetAction, table_stage, target_array
from coach_rl.filters.stages import StatelessActionStage


@parameter_class
class PartialDiscreteActionSpaceMap:
    """The agent's action i is `target_actions[i]`; all other actions are out of reach.

    The environment may take Discrete, MultiDiscrete, MultiBinary or Box actions. The way back goes
    to the same action, in a Box of floats to the nearest one.
    """

    target_actions: NonEmpty[tuple[TargetAction, ...]]
    """The environment's actions, no two alike: numbers, or tuples in the shape of its space."""

    def build(self, space: Space) -> StatelessActionStage:
        """Build the filter for a space that contains every target action."""
        owner = "PartialDiscreteActionSpaceMap"
        return table_stage(owner, target_array(owner, self.target_actions, space))
