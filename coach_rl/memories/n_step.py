"""N-step returns: windows of transitions, folded into a reward, a discount and an end."""

import numpy as np
import torch

from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.memories.columns import (
    DISCOUNTS,
    DURATIONS,
    ENDS,
    FOLLOWS,
    POSITIONS,
    REWARDS,
    TERMINATED,
    WINDOW_DURATIONS,
    WINDOW_KEPT,
    WINDOW_REWARDS,
    WINDOW_STEPS,
    WINDOW_TERMINATED,
    Columns,
)
from coach_rl.memories.ring_store import RingStore
from coach_rl.memories.sampling_chain import SamplerUnit


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

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
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
            WINDOW_REWARDS: torch.from_numpy(ledger[REWARDS].take(where)),
            WINDOW_TERMINATED: torch.from_numpy(ledger[TERMINATED].take(where)),
            WINDOW_DURATIONS: torch.from_numpy(ledger[DURATIONS].take(where)),
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

    def __call__(self, batch: Columns, size: int) -> Columns:  # noqa: ARG002 (part of the interface)
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
