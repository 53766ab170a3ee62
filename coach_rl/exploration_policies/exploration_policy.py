"""The interface between an off-policy agent and an exploration policy."""

from typing import Any, Protocol, TypeAlias, TypeVar

from coach_rl.core.agents import RowState
from coach_rl.core.clock import Clock
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray
from coach_rl.core.spaces import Space

Rows = TypeVar("Rows", bound=RowState)


class ExplorationPolicy(Protocol[Rows]):
    """Turns what a network says into actions, exploring or not; one object serves every stack.

    rows_state = policy.new_rows(num_rows=8, seed=0)         # owned and saved by whoever acts
    action = policy.explore(rows_state, rows, values, starts=starts, clock=clock)
    action = policy.greedy(values)                           # in TEST and for tested decisions

    `values` [R, A] are greedy actions in the agent's Box, or [R, n] the action values of a Discrete
    space. Actions come out in the agent's space, inside its bounds: [R, A] float32, or [R] int64.
    """

    def new_rows(self, num_rows: int, seed: int) -> Rows:
        """Noise streams and processes of the rows; row i draws from streams of (seed, i) alone."""
        ...

    def explore(
        self,
        state: Rows,
        rows: IntArray,
        values: FloatArray,
        *,
        starts: BoolArray,
        clock: Clock,
    ) -> Array:
        """Actions with exploration.

        Args:
            state: What `new_rows` made; only the rows spoken of are advanced.
            rows: [R], no row twice.
            values: What the network says, see above.
            starts: [R] the (sub-)episode begins with this decision: processes start anew.
            clock: True progress, for schedules.
        """
        ...

    def greedy(self, values: FloatArray) -> Array:
        """Actions without exploration."""
        ...

    def metrics(self, clock: Clock) -> dict[str, float]:
        """Return the metrics to log now, e.g. `exploration/epsilon`."""
        ...


AnyExplorationPolicy: TypeAlias = ExplorationPolicy[Any]
"""An exploration policy, whatever its rows remember: only the policy looks into their state."""


class ExplorationPolicyParameters(Protocol):
    """A frozen description of an exploration policy."""

    def build(self, action_space: Space) -> AnyExplorationPolicy:
        """The policy for an agent's action space; SpaceError when it can't serve it."""
        ...
