"""Names of a memory's columns, and the batches and rollouts that are built from them.

A column is an array or tensor under a flat path; its first axis counts transitions.
"""

from collections.abc import Mapping
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from coach_rl.core.records import HIDDEN_STATE, Array, Transition

Columns = dict[str, Tensor]
"""Columns by path, [B, ...] each."""

OBSERVATIONS = "/observations/"
NEXT_OBSERVATIONS = "/next_observations/"
"""An observation key follows."""
ACTIONS = "/actions"
ACTION_PARTS = "/actions/"
"""Path of the actions; for a Dict action space the name of a part follows."""
REWARDS = "/rewards"
TERMINATED = "/terminated"
TRUNCATED = "/truncated"
DURATIONS = "/durations"
ROWS = "/rows"
FOLLOWS = "/follows"
"""Nothing was left out and no goal moved between a transition and its row's one before."""
MASK = "/mask"
"""Path of the mask: true where there is a transition."""

POSITIONS = "/positions"
WEIGHTS = "/weights"
DISCOUNTS = "/discounts"
"""Columns of a batch."""

LOW_BEGIN, LOW_END = "/low_begin", "/low_end"
"""Steps [begin, end) of a decision's row in the memory of the level below; kept where a sampler
unit reads them."""
END_BITS, BELOW_BITS = "/end", "/below"
"""Bits of `End` at the level itself, and those that the level below reported; kept where a
sampler unit reads them, or the memory's `extras` name them."""

INTERNAL = "/sampling/"
"""Columns under this prefix pass between sampler units and are not part of a batch."""
ENDS = f"{INTERNAL}ends"
"""Position of the last transition of each n-step return: its next observation is the batch's."""
WINDOW_STEPS, WINDOW_KEPT = f"{INTERNAL}window/steps", f"{INTERNAL}window/kept"
WINDOW_REWARDS = f"{INTERNAL}window/rewards"
WINDOW_TERMINATED = f"{INTERNAL}window/terminated"
WINDOW_DURATIONS = f"{INTERNAL}window/durations"

_EVERYONES = (OBSERVATIONS, NEXT_OBSERVATIONS)
_EVERYONES_TOO = (REWARDS, TERMINATED, TRUNCATED, DURATIONS, ROWS, FOLLOWS)
_OF_BATCHES = (POSITIONS, WEIGHTS, DISCOUNTS, MASK)
INFOS = "infos/"
"""Extras under this prefix are infos of the environment."""
_Column = TypeVar("_Column")


def extra(name: str) -> str:
    """The column of what an agent keeps with its actions under a name."""
    return f"/{name}"


def under(prefix: str, columns: Mapping[str, _Column]) -> dict[str, _Column]:
    """The columns whose paths begin so, by what follows."""
    return {
        path.removeprefix(prefix): column
        for path, column in columns.items()
        if path.startswith(prefix)
    }


def extras_of(columns: Mapping[str, _Column]) -> dict[str, _Column]:
    """The columns that only some agents or users have, by name."""
    return {
        path.removeprefix("/"): column
        for path, column in columns.items()
        if not path.startswith(_EVERYONES)
        and path not in _EVERYONES_TOO
        and path not in _OF_BATCHES
        and not _is_action(path)
    }


def columns_of(transition: Transition) -> dict[str, Array]:
    """A transition's columns, [R, ...] each, without those that only some memories keep."""
    columns = {
        REWARDS: transition.reward,
        TERMINATED: transition.terminated,
        TRUNCATED: transition.truncated,
        DURATIONS: transition.duration,
    }
    for key, values in transition.observation.items():
        columns[f"{OBSERVATIONS}{key}"] = values
    for key, values in transition.next_observation.items():
        columns[f"{NEXT_OBSERVATIONS}{key}"] = values
    if isinstance(transition.action, dict):
        for key, part in transition.action.items():
            columns[f"{ACTION_PARTS}{key}"] = part
    else:
        columns[ACTIONS] = transition.action
    return columns


def shown_as(path: str, agent: str) -> str:
    """The name under which a memory's `trajectories` show a column.

    Observations, infos, rewards, ends, durations and rows keep theirs. What belongs to an agent
    is listed under its name: `/agents/<name>/actions` (or `/agents/<name>/actions/<part>`),
    `/agents/<name>/hidden_state` and, for every other extra it keeps,
    `/agents/<name>/artifacts/<extra>`.

    Args:
        path: The column's path.
        agent: The agent's name.
    """
    if path.startswith((*_EVERYONES, extra(INFOS))) or path in _EVERYONES_TOO:
        return path
    if _is_action(path) or path == extra(HIDDEN_STATE):
        return f"/agents/{agent}{path}"
    return f"/agents/{agent}/artifacts{path}"


def _is_action(path: str) -> bool:
    return path == ACTIONS or path.startswith(ACTION_PARTS)


Tensors = dict[str, Tensor]
"""Tensors by name, e.g. by observation key."""


def mean_of_valid(values: Tensor, valid: Tensor | None) -> Tensor:
    """The mean of values [..., B] where `valid` [B] is true, once at least; None: of all."""
    if valid is None:
        return values.mean()
    return torch.where(valid, values, 0.0).sum() / valid.expand_as(values).sum()


class Rollout(NamedTuple):
    """Everything that a rollout memory holds, on the learner's device, [C, ...] each.

    The order is that of arrival; C is the memory's capacity, and only as many transitions as it
    holds are valid. The slots behind them repeat earlier values, so that a network can be
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
    valid: Tensor | None = None
    """False at the position that pads sequences, [C] bool; None where there are no sequences."""
    streams: Tensors = {}  # noqa: RUF012 (never written to)
    """Values and targets, as above, of the critics of further streams of reward, [C, 2] each."""

    def mean(self, values: Tensor) -> Tensor:
        """The mean of values [..., C] over the transitions, without padding."""
        return mean_of_valid(values, self.valid)


class Minibatch(NamedTuple):
    """Some transitions of a rollout, gathered inside the gradient step."""

    rollout: RolloutBatch
    positions: Tensor
    """Indices of the transitions, int64 [B]; of S sequences that are learned together, [S, W]."""
