"""Exploration by parameters: a policy whose parameters are perturbed for each row."""

from typing import Any, Protocol, TypeAlias, TypeVar

from coach_rl.core.agents import RowState
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.spaces import Space

Rows = TypeVar("Rows", bound=RowState)


class ParameterExploration(Protocol[Rows]):
    """Parameters perturbed for each row; one object serves every stack.

        rows_state = exploration.new_rows(num_rows=8, seed=0)    # owned and saved by the actor
        own = exploration.perturbed(rows_state, rows, flat, starts=starts)          # [R, P]
        action = vmapped_forward(own, observation)     # [R, A]
        plain = forward(flat, observation)             # [R, A]
        exploration.note_actions(rows_state, rows, perturbed=action, greedy=plain)

    Rows that do not explore (in TEST, or tested) act with `flat` and are not passed here.
    """

    def new_rows(self, num_rows: int, seed: int) -> Rows:
        """Perturbations of the rows; row i draws from streams of (seed, i) alone."""
        ...

    def perturbed(
        self, state: Rows, rows: IntArray, flat: FloatArray, *, starts: BoolArray
    ) -> FloatArray:
        """The parameters each row acts with, a new float32 array [R, P].

        Args:
            state: What `new_rows` made; only those in `rows` advance.
            rows: [R], no row twice.
            flat: [P] the network's parameters as they are now.
            starts: [R] the (sub-)episode begins with this decision.
        """
        ...

    def note_actions(
        self, state: Rows, rows: IntArray, *, perturbed: FloatArray, greedy: FloatArray
    ) -> None:
        """Adapt the scale to the perturbations' effect on the actions.

        Args:
            state: What `new_rows` made; only those in `rows` advance.
            rows: [R], no row twice.
            perturbed: [R, A] actions by the perturbed parameters, without any further noise.
            greedy: [R, A] actions by the parameters as they are, for the same observations.
        """
        ...

    def metrics(self, state: Rows) -> dict[str, float]:
        """Return the metrics to log now, means over the rows."""
        ...


AnyParameterExploration: TypeAlias = ParameterExploration[Any]
"""A parameter exploration, whatever its rows remember."""


class ParameterExplorationParameters(Protocol):
    """A frozen description of a way to explore with parameters."""

    def build(self, action_space: Space, *, perturbable: BoolArray) -> AnyParameterExploration:
        """The exploration for an agent; SpaceError when it can't serve the action space.

        Args:
            action_space: The agent's.
            perturbable: [P] which of the flat parameters may be perturbed.
        """
        ...
