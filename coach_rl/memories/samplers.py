"""The sampler units every replay memory is made of: positions, n-step returns, gathering."""

from collections.abc import Sequence

import numpy as np
import torch

from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray
from coach_rl.memories.memory import Batch
from coach_rl.memories.ring_store import RingStore
from coach_rl.memories.sampling_chain import SamplerUnit

POSITIONS, WEIGHTS = "/positions", "/weights"
REWARDS, DISCOUNTS = "/rewards", "/discounts"
FOLLOWS = "/follows"
"""Column of the ledger of n-step returns: nothing was left out and no goal moved before it."""
ENDS = "/sampling/ends"
"""Position of the last transition of each n-step return: its next observation is the batch's."""
WINDOW_STEPS = "/sampling/window/steps"
WINDOW_KEPT = "/sampling/window/kept"
WINDOW_REWARDS = "/sampling/window/rewards"
WINDOW_TERMINATED = "/sampling/window/terminated"
WINDOW_DURATIONS = "/sampling/window/durations"


class UniformPositions(SamplerUnit):
    """Each transition kept is equally likely; drawn with replacement."""

    name = "positions"
    outputs = (POSITIONS, WEIGHTS)

    def __init__(self, store: RingStore, rng: np.random.Generator) -> None:
        self._store, self._rng = store, rng

    def __call__(self, batch: Batch, size: int) -> Batch:  # noqa: ARG002 (part of the interface)
        """Positions [B], weights of 1."""
        positions = self._store.draw(self._rng, size)
        return {POSITIONS: torch.from_numpy(positions), WEIGHTS: torch.ones(size)}


class OneStep(SamplerUnit):
    """Reward and discount of single transitions.

    Args:
        store: Where they are kept.
        discount: Gamma, per decision or per simulator step.
        by_duration: Whether gamma counts per simulator step.
    """

    name = "n_step"
    inputs = (POSITIONS,)
    outputs = (REWARDS, DISCOUNTS, ENDS)

    def __init__(self, store: RingStore, *, discount: float, by_duration: bool) -> None:
        self._ledger, self._by_duration = store.ledger, by_duration
        self._discount = np.float32(discount)

    def __call__(self, batch: Batch, size: int) -> Batch:  # noqa: ARG002 (part of the interface)
        """Rewards, discounts and ends, [B] each."""
        positions = batch[POSITIONS].numpy()
        discounts = ~self._ledger["/terminated"].take(positions) * self._discount
        if self._by_duration:
            discounts = np.where(
                discounts > 0, discounts ** self._ledger["/durations"].take(positions), 0
            ).astype(np.float32)
        return {
            REWARDS: torch.from_numpy(self._ledger["/rewards"].take(positions)),
            DISCOUNTS: torch.from_numpy(discounts),
            ENDS: batch[POSITIONS],
        }


class Window(SamplerUnit):
    """The n transitions from each position on, as far as each follows on the one before it.

    Args:
        store: Where they are kept; with `FOLLOWS` in its ledger where n is more than 1.
        n_step: n.
    """

    name = "window"
    inputs = (POSITIONS,)
    outputs = (WINDOW_STEPS, WINDOW_KEPT, WINDOW_REWARDS, WINDOW_TERMINATED, WINDOW_DURATIONS)

    def __init__(self, store: RingStore, n_step: int) -> None:
        self._store, self._ahead = store, np.arange(n_step)

    def __call__(self, batch: Batch, size: int) -> Batch:  # noqa: ARG002 (part of the interface)
        """Steps, whether they follow in the episode, and their ledger, [B, n] each."""
        positions, store = batch[POSITIONS].numpy(), self._store
        _, ends = store.episodes_of(positions)
        steps = store.steps_of(positions)[:, None] + self._ahead
        kept = steps < ends[:, None]
        steps = np.where(kept, steps, ends[:, None] - 1)
        where = store.positions_of(store.rows_of(positions)[:, None], steps)
        ledger = store.ledger
        if len(self._ahead) > 1:
            follows = ledger[FOLLOWS].take(where[:, 1:])
            kept[:, 1:] &= np.logical_and.accumulate(follows, axis=1)
        return {
            WINDOW_STEPS: torch.from_numpy(steps),
            WINDOW_KEPT: torch.from_numpy(kept),
            WINDOW_REWARDS: torch.from_numpy(ledger["/rewards"].take(where)),
            WINDOW_TERMINATED: torch.from_numpy(ledger["/terminated"].take(where)),
            WINDOW_DURATIONS: torch.from_numpy(ledger["/durations"].take(where)),
        }


class NStep(SamplerUnit):
    """Folds a window into a reward, a discount and an end.

    The return stops behind a transition that terminates, at the episode's end, where a goal moved
    within it, and at the newest transition of the row; after k transitions the next observation's
    value counts gamma^k.

    Args:
        store: Where the transitions are kept.
        discount: Gamma, per decision or per simulator step.
        by_duration: Whether gamma counts per simulator step.
    """

    name = "n_step"
    inputs = (POSITIONS, *Window.outputs)
    outputs = (REWARDS, DISCOUNTS, ENDS)

    def __init__(self, store: RingStore, *, discount: float, by_duration: bool) -> None:
        self._store, self._discount, self._by_duration = store, discount, by_duration

    def __call__(self, batch: Batch, size: int) -> Batch:  # noqa: ARG002 (part of the interface)
        """Rewards, discounts and ends, [B] each."""
        durations = batch[WINDOW_DURATIONS].numpy() if self._by_duration else None
        rewards, discounts, counts = n_step_returns(
            rewards=batch[WINDOW_REWARDS].numpy(),
            terminated=batch[WINDOW_TERMINATED].numpy(),
            kept=batch[WINDOW_KEPT].numpy(),
            durations=durations,
            discount=self._discount,
        )
        rows = self._store.rows_of(batch[POSITIONS].numpy())
        last = batch[WINDOW_STEPS].numpy()[np.arange(len(rows)), counts - 1]
        return {
            REWARDS: torch.from_numpy(rewards),
            DISCOUNTS: torch.from_numpy(discounts),
            ENDS: torch.from_numpy(self._store.positions_of(rows, last)),
        }


def n_step_returns(
    *,
    rewards: FloatArray,
    terminated: BoolArray,
    kept: BoolArray,
    durations: IntArray | None,
    discount: float,
) -> tuple[FloatArray, FloatArray, IntArray]:
    """Discounted sums over windows that end early where they must.

    Args:
        rewards: [B, n].
        terminated: [B, n]; nothing behind the first such transition counts.
        kept: [B, n]; false from where the window leaves its episode; its first column is true.
        durations: [B, n] powers of the discount that a transition takes; None: 1 each.
        discount: Gamma.

    Returns:
        Float32 sums [B], float32 discounts of what follows [B], and how many transitions were
        summed [B].
    """
    used = kept.copy()
    used[:, 1:] &= ~np.logical_or.accumulate(terminated[:, :-1], axis=1)
    counts: IntArray = np.count_nonzero(used, axis=1)
    counted = np.where(used, rewards, 0.0)
    if durations is None:
        powers = discount ** np.arange(rewards.shape[1] + 1)
        sums, following = counted @ powers[:-1], powers[counts]
    else:
        elapsed = np.cumsum(np.where(used, durations, 0), axis=1)  # [B, n], after each
        powers = discount**elapsed
        sums, following = (
            counted[:, 0] + (counted[:, 1:] * powers[:, :-1]).sum(axis=1),
            powers[:, -1],
        )
    is_final = terminated[np.arange(len(counts)), counts - 1]
    discounts = np.where(is_final, 0.0, following)
    return sums.astype(np.float32), discounts.astype(np.float32), counts


class Gather(SamplerUnit):
    """Takes observations, actions and whatever else is kept out of the store.

    Args:
        store: Where they are kept.
        paths: The columns taken at the positions themselves.
        next_paths: The columns taken at the ends of the n-step returns.
    """

    name = "gather"
    inputs = (POSITIONS, ENDS)

    def __init__(self, store: RingStore, paths: Sequence[str], next_paths: Sequence[str]) -> None:
        self._store, self._paths, self._next_paths = store, tuple(paths), tuple(next_paths)
        self.outputs = (*self._paths, *self._next_paths)

    def __call__(self, batch: Batch, size: int) -> Batch:  # noqa: ARG002 (part of the interface)
        """The columns, [B, ...] each, on the learner's device."""
        here, ends = _numpy(batch, POSITIONS), _numpy(batch, ENDS)
        return self._store.take(self._paths, here) | self._store.take(self._next_paths, ends)


def _numpy(batch: Batch, path: str) -> Array:
    return np.asarray(batch[path].numpy())
