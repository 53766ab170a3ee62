"""Decisions of scripts and of agents that act at random, as torch modules."""

from collections.abc import Callable

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor

from coach_rl.core.discrete_actions import choice_sizes, first_action
from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.random_actions import uniform_size
from coach_rl.core.spaces import Space
from coach_rl.extensions.exporting.decisions import (
    Chosen,
    Decision,
    Place,
    Request,
    clipped,
    decision_of,
    dtype_of,
    function_of,
    in_space,
)
from coach_rl.extensions.exporting.numpy_functions import samples_of
from coach_rl.extensions.exporting.policies import Tensors
from coach_rl.extensions.scripts.scripted_agent import ScriptedAgent, UniformAgent


@decision_of.register
def _script_decision(agent: ScriptedAgent, place: Place) -> Decision:
    space = place.acts_in
    if agent.built_in is not None:
        return ScriptDecision(agent.built_in, space)
    policy = function_of(
        agent,
        "its script",
        lambda seen: agent.policy(seen, space),
        lambda rows: (samples_of(place.sees, rows),),
    )
    return FunctionDecision(policy, space)


@decision_of.register
def _random_decision(agent: UniformAgent, place: Place) -> Decision:
    return RandomDecision(place.acts_in, agent.mask_key)


class FunctionDecision(Decision):
    """A script of the user's.

    Args:
        policy: Actions [R, ...] of observations, [R, ...] each.
        space: Where it acts.
    """

    def __init__(self, policy: Callable[[Tensors], Chosen], space: Space) -> None:
        super().__init__()
        self._policy = policy
        self._space = space

    def forward(self, request: Request) -> tuple[Chosen, Tensors]:
        """The script's actions within the bounds of their space."""
        return in_space(self._space, self._policy(request.seen)), {}


class RandomDecision(Decision):
    """Actions as `core.spaces.actions_from_uniform` draws them.

    Args:
        space: Where they lie.
        mask_key: Observation key of which are allowed; None: all are.
    """

    def __init__(self, space: Space, mask_key: str | None) -> None:
        super().__init__()
        self._space = space
        self._mask_key = mask_key
        self.noise["random"] = uniform_size(space)

    def forward(self, request: Request) -> tuple[Chosen, Tensors]:
        """Random actions; nothing is remembered."""
        uniform = request.random
        assert uniform is not None
        space = self._space
        key = self._mask_key
        allowed = None if key is None else request.seen[key].flatten(1) > 0
        if not isinstance(space, spaces.Dict):
            return _drawn(space, uniform, allowed), {}
        parts: Tensors = {}
        begin = first = 0
        for name, part in space.spaces.items():
            size = uniform_size(part)
            choices = sum(choice_sizes(part))
            own = None if allowed is None else allowed[:, first : first + choices]
            parts[name] = _drawn(part, uniform[:, begin : begin + size], own)
            begin += size
            first += choices
        return parts, {}


def _drawn(space: Space, uniform: Tensor, allowed: Tensor | None) -> Tensor:
    """Random actions [R, ...] of a space without parts.

    Args:
        space: The space.
        uniform: Numbers in [0, 1), [R, uniform_size(space)].
        allowed: The allowed entries of choices, [R, sum of their sizes]; None: all.
    """
    if isinstance(space, spaces.Box):
        return _in_box(space, uniform).reshape(-1, *space.shape)
    sizes = choice_sizes(space)
    if allowed is not None:
        by_choice = torch.split_with_sizes(allowed, list(sizes), dim=1)
        columns = [_allowed(part, uniform[:, n]) for n, part in enumerate(by_choice)]
        chosen = torch.stack(columns, dim=1)
    else:
        chosen = (uniform * torch.tensor(sizes)).to(torch.int64)
    chosen = chosen.reshape(-1, *(space.shape or ()))
    return chosen + torch.from_numpy(np.asarray(first_action(space), np.int64))


def _allowed(allowed: Tensor, uniform: Tensor) -> Tensor:
    """`core.spaces.allowed_choice` of tensors, [R]."""
    each = allowed.to(torch.int64)
    count = each.sum(dim=1)
    number = torch.minimum((uniform * count).to(torch.int64), count - 1)
    return (each.cumsum(dim=1) > number[:, None]).to(torch.int64).argmax(dim=1)


def _in_box(space: spaces.Box, uniform: Tensor) -> Tensor:
    """Numbers [R, A] over the whole of a Box, as `core.spaces` draws them."""
    low, high = space.low.reshape(-1), space.high.reshape(-1)
    below, above = (torch.from_numpy(np.isfinite(each)) for each in (low, high))
    kind = np.float64 if low.dtype.kind == "i" else low.dtype
    lowest, highest = (
        torch.from_numpy(np.where(np.isfinite(each), each, 0).astype(kind)) for each in (low, high)
    )
    if low.dtype.kind in "iu":
        return torch.floor(lowest + uniform * (highest - lowest + 1)).to(dtype_of(space))
    exponential = -torch.log1p(-uniform)
    logistic = torch.log(uniform.clamp(min=1e-12)) + exponential
    within = lowest * (1 - uniform) + highest * uniform
    beyond = torch.where(below, lowest + exponential, highest - exponential)
    value = torch.where(below & above, within, torch.where(below | above, beyond, logistic))
    return value.to(dtype_of(space))


class ScriptDecision(Decision):
    """A script that is built in.

    Args:
        name: `still` or `desired_goal`.
        space: Where it acts.
    """

    def __init__(self, name: str, space: Space) -> None:
        super().__init__()
        self._name = name
        self._space = space

    def forward(self, request: Request) -> tuple[Chosen, Tensors]:
        """The goal it receives, or the action that is nearest to 0."""
        space = self._space
        rows = next(iter(request.seen.values()))
        if self._name == "desired_goal":
            assert isinstance(space, spaces.Box)
            return clipped(space, request.seen[GOAL_KEY].reshape(-1, *space.shape)), {}
        if isinstance(space, spaces.Box):
            still = np.clip(np.zeros(space.shape, space.dtype), space.low, space.high)
        else:
            still = np.asarray(first_action(space), space.dtype)
        constant = torch.from_numpy(np.asarray(still))
        zeros = torch.zeros_like(rows.reshape(rows.shape[0], -1)[:, 0], dtype=constant.dtype)
        return constant + zeros.reshape(-1, *[1] * constant.ndim), {}
