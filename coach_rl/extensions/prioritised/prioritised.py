"""Prioritised replay (Schaul et al. 2016, arXiv:1511.05952), which draws from a sum tree."""

from typing import Annotated

import numpy as np
import numpy.typing as npt
import torch
from annotated_types import Interval

from coach_rl.core.errors import NonFiniteError, RunError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive, UnitInterval
from coach_rl.core.records import FloatArray, IntArray
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.memories.batches import POSITIONS, WEIGHTS, Columns
from coach_rl.memories.ring_store import RingStore
from coach_rl.memories.samplers import SamplerUnit

Float64Array = npt.NDArray[np.float64]
SEARCHED_DEPTH = 12
"""Down to this depth one search through a whole level is faster than a descent, level by level."""
SAVED_PRIORITY = 24
"""Bytes that saving a priority takes for a moment: value, position and place in the tree."""


class SumTree:
    """A binary tree in an array: each node holds the sum of its two children.

    Inner nodes are always recomputed from their children, never changed by differences, so rounding
    doesn't pile up and the tree depends on its leaves alone.

    Args:
        size: Number of leaves; rounded up to a power of two inside.

    Attributes:
        nodes: The sums, float64 [2 * first]: the root at 1, the children of node i at 2i and
            2i + 1, the leaves from `first` on.
    """

    def __init__(self, size: int) -> None:
        self._depth = max(size - 1, 1).bit_length()
        self._first = 1 << self._depth
        self.nodes: Float64Array = np.zeros(2 * self._first)

    @property
    def total(self) -> float:
        """The sum of all leaves."""
        return float(self.nodes[1])

    def __getitem__(self, index: IntArray) -> Float64Array:
        """The leaves at `index`, [B]."""
        return self.nodes[index + self._first]

    def set(self, index: IntArray, values: Float64Array) -> None:
        """Give leaves at `index` [B] new values [B], 0 or more; the last of equal ones counts."""
        nodes = index + self._first
        self.nodes[nodes] = values
        for _ in range(self._depth):
            nodes = nodes >> 1
            left = nodes << 1
            self.nodes[nodes] = self.nodes[left] + self.nodes[left + 1]

    def fill(self, index: IntArray, values: Float64Array) -> None:
        """Set every leaf: those at `index` to values, the others to 0."""
        self.nodes[:] = 0
        self.nodes[index + self._first] = values
        begin = self._first
        while begin > 1:
            level = self.nodes[begin : 2 * begin]
            begin //= 2
            self.nodes[begin : 2 * begin] = level[0::2] + level[1::2]

    def find(self, sums: Float64Array) -> IntArray:
        """The leaves at which the running sum of all leaves passes `sums`, [B].

        A leaf of 0 is never found, however the sums are rounded, as long as any leaf is not 0.

        Args:
            sums: In [0, total), [B].
        """
        top = min(self._depth, SEARCHED_DEPTH)
        level = self.nodes[1 << top : 2 << top]
        passed = np.cumsum(level)  # [2 ** top], sums of the leaves up to and with each subtree
        last = np.searchsorted(passed, passed[-1])  # all behind it are 0
        found = np.minimum(np.searchsorted(passed, sums, side="right"), last)
        rest = sums - (passed - level)[found]
        nodes: IntArray = found + (1 << top)
        for _ in range(self._depth - top):
            left = nodes << 1
            in_left = self.nodes.take(left)
            to_right = ((rest >= in_left) & (self.nodes.take(left + 1) > 0)) | (in_left <= 0)
            rest -= in_left * to_right
            nodes = left + to_right
        return nodes - self._first


def tree_bytes(size: int) -> int:
    """Memory a tree of that many leaves takes."""
    return int(16 << max(size - 1, 1).bit_length())


@parameter_class
class PrioritisedParameters:
    """Proportional prioritisation; defaults of the paper's table 3, proportional variant."""

    alpha: Annotated[float, Interval(ge=0, le=4)] = 0.6
    """Exponent of the priorities: 0 is uniform, 1 fully in proportion. Beyond 4 priorities could
    overflow."""
    beta: UnitInterval = 0.4
    """Initial exponent of the importance weights; 1 corrects fully."""
    anneal_beta_over: Positive[EnvironmentSteps] | None = EnvironmentSteps(1_000_000)
    """Environment steps added to the memory until beta has risen to 1; None: it stays."""
    epsilon: Positive[float] = 1e-6
    """Added to every error, so that none is forgotten."""

    def __post_init__(self) -> None:
        require(
            self.epsilon**self.alpha > 0,
            f"PrioritisedParameters.epsilon={self.epsilon} to the power of alpha={self.alpha} is "
            "rounded to 0, which would never be drawn; raise epsilon, or lower alpha",
        )

    def build(self, store: RingStore, rng: np.random.Generator) -> "PrioritisedPositions":
        return PrioritisedPositions(store, rng, self)

    def host_bytes(self, entries: int) -> int:
        return tree_bytes(entries) + entries * SAVED_PRIORITY


class PrioritisedPositions(SamplerUnit):
    """Positions in proportion to (|error| + epsilon) ** alpha, one from each of B equal strata.

    A new transition gets the greatest priority there has been. Weights are divided by the greatest
    of the batch, so they only ever shrink a step and need no minimum over the whole memory (Schaul
    et al. divide by the greatest of all, which lets one rare transition shrink every step).
    """

    name = "positions"
    outputs = (POSITIONS, WEIGHTS)

    def __init__(
        self, store: RingStore, rng: np.random.Generator, params: PrioritisedParameters
    ) -> None:
        self._store = store
        self._rng = rng
        self._params = params
        self._tree = SumTree(store.num_rows * store.row_capacity)
        self._greatest = 1.0
        self._steps_added = 0

    @property
    def beta(self) -> float:
        """Current exponent of the importance weights."""
        params = self._params
        if params.anneal_beta_over is None:
            return params.beta
        progress = min(1.0, self._steps_added / params.anneal_beta_over.count)
        return params.beta + (1.0 - params.beta) * progress

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
        total = self._tree.total
        if not total:
            raise RunError("the memory is empty; add transitions before sampling")
        strata = np.arange(size) + self._rng.random(size)  # stratum i: (i + u) total / B, [B]
        positions = self._tree.find(strata * (total / size))
        weights = importance_weights(self._tree[positions], self.beta)
        return {POSITIONS: torch.from_numpy(positions), WEIGHTS: torch.from_numpy(weights)}

    def added(self, positions: IntArray, environment_steps: int) -> None:
        """Give new transitions at positions [R] the greatest priority, and advance beta."""
        self._tree.set(positions, np.full(len(positions), self._greatest))
        self._steps_added += environment_steps

    def note_errors(self, positions: IntArray, errors: FloatArray) -> None:
        """Priorities from errors, [B] each; NonFiniteError when one is not finite."""
        if not np.isfinite(errors).all():
            bad = int(np.count_nonzero(~np.isfinite(errors)))
            raise NonFiniteError(
                f"{bad} of {len(errors)} errors given to the prioritised memory are not finite; "
                "the learner has diverged: lower its learning rate, or clip gradients"
            )
        priorities = (np.abs(errors.astype(np.float64)) + self._params.epsilon) ** (
            self._params.alpha
        )
        self._tree.set(positions, priorities)
        self._greatest = max(self._greatest, float(priorities.max(initial=0.0)))

    def priorities(self, positions: IntArray) -> FloatArray:
        """Return the priorities that the probabilities are in proportion to, float64 [B]."""
        priorities: FloatArray = self._tree[positions]
        return priorities

    def clear(self) -> None:
        """Remove all priorities; beta keeps its value."""
        self._tree.fill(np.zeros(0, np.int64), np.zeros(0))
        self._greatest = 1.0

    def metrics(self) -> dict[str, float]:
        return {"memory/beta": self.beta}

    def state_dict(self) -> State:
        return {
            "priorities": self._tree[self._store.kept()],
            "greatest": self._greatest,
            "steps_added": self._steps_added,
        }

    def load_state_dict(self, state: State) -> None:
        """Load a saved state; the store must have been loaded before."""
        kept = self._store.kept()
        priorities = np.asarray(state["priorities"])
        if len(kept) == len(priorities):
            self._tree.fill(kept, priorities)
        self._greatest = state["greatest"]
        self._steps_added = state["steps_added"]


def importance_weights(priorities: FloatArray, beta: float) -> FloatArray:
    """Weights (M P(i)) ** -beta, divided by the batch's greatest; float32 [B].

    The number M of transitions and the sum of all priorities cancel in the division.

    Args:
        priorities: Of the transitions drawn, more than 0, [B].
        beta: How much to correct.
    """
    weights: FloatArray = ((priorities / priorities.min()) ** -beta).astype(np.float32)
    return weights
