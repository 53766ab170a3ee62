"""Tensors to learn from: batches of transitions, rollouts and minibatches of them."""

from typing import NamedTuple

from torch import Tensor

from coach_rl.memories.columns import (
    ACTION_PARTS,
    ACTIONS,
    DISCOUNTS,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    POSITIONS,
    REWARDS,
    WEIGHTS,
    Columns,
    extras_of,
    under,
)

Tensors = dict[str, Tensor]
"""Tensors by name, e.g. by observation key."""


class TransitionBatch(NamedTuple):
    """B transitions drawn from a replay memory, on the learner's device."""

    observation: Tensors
    """[B, ...] each, by observation key."""
    action: Tensor
    """[B, ...]; [B, 0] where the action space is a Dict, see `action_parts`."""
    reward: Tensor
    """Rewards summed and discounted over the n steps of the return, float32 [B]."""
    discount: Tensor
    """Discount of the next observation's value, float32 [B]: 0 where the episode terminated,
    gamma^n otherwise.
    """
    next_observation: Tensors
    """The true observation after those steps, [B, ...] each."""
    weight: Tensor
    """Weight of each transition in the loss, float32 [B]; 1 unless prioritised."""
    position: Tensor
    """Position of each transition in the memory, int64 [B]; pass it to `note_errors`."""
    action_parts: Tensors = {}  # noqa: RUF012 (nobody writes to it)
    """Parts of a Dict action space, [B, ...] each."""
    extras: Tensors = {}  # noqa: RUF012 (nobody writes to it)
    """Arrays the agent has kept with its actions, and columns of the user's own, [B, ...] each."""


def as_batch(columns: Columns) -> TransitionBatch:
    """A batch from a sampler's columns."""
    weight = columns[WEIGHTS]
    return TransitionBatch(
        observation=under(OBSERVATIONS, columns),
        action=columns[ACTIONS] if ACTIONS in columns else weight.new_zeros(len(weight), 0),
        reward=columns[REWARDS],
        discount=columns[DISCOUNTS],
        next_observation=under(NEXT_OBSERVATIONS, columns),
        weight=weight,
        position=columns[POSITIONS],
        action_parts=under(ACTION_PARTS, columns),
        extras=extras_of(columns),
    )


class Rollout(NamedTuple):
    """Everything that a rollout memory holds, on the learner's device, [C, ...] each.

    The order is that of arrival; C is the memory's capacity, and only as many transitions as it
    holds mean anything. The slots behind them repeat earlier values, so that a network can be
    evaluated on whole columns.
    """

    observation: Tensors
    """Observations by key."""
    action: Tensor
    """Action as the agent chose it."""
    reward: Tensor
    """[C]."""
    next_observation: Tensors
    """Next observations by key: the true observation that the action led to."""
    terminated: Tensor
    """[C] bool."""
    truncated: Tensor
    """[C] bool."""
    duration: Tensor
    """Simulator steps, [C]."""
    follows: Tensor
    """True where a transition begins where its row's previous one ended, [C] bool."""
    extras: Tensors
    """Arrays the agent has kept with its actions, by name."""


class RolloutBatch(NamedTuple):
    """All transitions of a rollout with what the current round learns from, [C, ...] each."""

    observation: Tensors
    """Observations by key."""
    action: Tensor
    """Actions as the policy's distribution counts them: Discrete actions from 0."""
    log_prob: Tensor
    """Log-probability of the action under the policy that chose it, [C]."""
    advantage: Tensor
    """[C]."""
    target: Tensor
    """Target of the critic, in its own scale, [C]."""
    value: Tensor
    """Prediction of the critic before this round, in its own scale, [C]."""
    policy: Tensor | None
    """Parameters of the distribution that the action was drawn from, [C, P]; None where the
    objective does not need them."""


class Minibatch(NamedTuple):
    """Some transitions of a rollout, gathered inside the gradient step."""

    rollout: RolloutBatch
    positions: Tensor
    """Indices of the transitions, int64 [B]."""
