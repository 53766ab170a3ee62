"""No exploration at all."""

from gymnasium import spaces

from coach_rl.core.clock import Clock
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray
from coach_rl.core.saved import Saved
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies.action_spaces import BoxActions, DiscreteActions
from coach_rl.exploration_policies.exploration_policy import AnyExplorationPolicy


@parameter_class
class Greedy:
    """The network's choice: the largest action value (the first of equals), or the action."""

    def build(self, action_space: Space) -> AnyExplorationPolicy:
        """Build the policy for a Discrete space or a bounded Box of floats."""
        if isinstance(action_space, spaces.Discrete):
            return GreedyPolicy(DiscreteActions(action_space, policy="Greedy"))
        return GreedyPolicy(BoxActions(action_space, policy="Greedy"))


class NothingToRemember(Saved):
    """The row state of a policy that draws nothing."""


class GreedyPolicy:
    """Always the greedy action; an `ExplorationPolicy`."""

    def __init__(self, actions: DiscreteActions | BoxActions) -> None:
        self._actions = actions

    def new_rows(self, num_rows: int, seed: int) -> NothingToRemember:  # noqa: ARG002 - protocol
        """Rows that remember nothing."""
        return NothingToRemember()

    def explore(
        self,
        state: NothingToRemember,  # noqa: ARG002 - protocol
        rows: IntArray,  # noqa: ARG002 - protocol
        values: FloatArray,
        *,
        starts: BoolArray,  # noqa: ARG002 - protocol
        clock: Clock,  # noqa: ARG002 - protocol
    ) -> Array:
        """The greedy actions."""
        return self.greedy(values)

    def greedy(self, values: FloatArray) -> Array:
        """The greedy actions."""
        return self._actions.greedy(values)

    def metrics(self, clock: Clock) -> dict[str, float]:  # noqa: ARG002 - protocol
        """Nothing."""
        return {}
