"""Environments with action masks that are checked by allowed actions alone."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces

from coach_rl.core.discrete_actions import choice_sizes, first_action
from coach_rl.core.errors import ActionError
from coach_rl.core.interfaces import Environment
from coach_rl.core.records import (
    ACTION_MASK,
    Action,
    Array,
    BoolArray,
    Directive,
    EnvResponse,
    IntArray,
    Observation,
)
from coach_rl.core.spaces import Space, check_actions
from coach_rl.core.state import State


class AllowedActions:
    """An environment with masks that gets the next allowed action in place of a forbidden one.

    So the checks may play any actions. Those outside the space are sent on as they are.

    Args:
        inner: The environment.
    """

    def __init__(self, inner: Environment) -> None:
        self._inner = inner
        self._space = inner.spaces.action
        self._sizes = choice_sizes(self._space)
        self.last_sent: Action = np.zeros(0)
        """The actions that the environment got last."""
        self._masks: BoolArray = np.ones((inner.num_envs, sum(self._sizes)), np.bool_)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        return self._noted(self._inner.reset(seed=seed))

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        action = directive.action if isinstance(directive, Directive) else directive
        numbers = np.arange(len(self._masks)) if rows is None else np.asarray(rows)
        if not self._can_be_replaced(action, numbers):
            self._inner.send(directive, rows)
            return
        sent = self.last_sent = self._replaced(action, numbers)
        same: Directive | Action = sent
        if isinstance(directive, Directive):
            same = Directive(
                action=sent, tested=directive.tested, outer_goals=directive.outer_goals
            )
        self._inner.send(same, rows)

    def recv(self) -> EnvResponse:
        return self._noted(self._inner.recv())

    def state_dict(self) -> State:
        return {"inner": self._inner.state_dict(), "masks": self._masks.copy()}

    def load_state_dict(self, state: State) -> None:
        self._inner.load_state_dict(state["inner"])
        self._masks = np.array(state["masks"])

    def _noted(self, response: EnvResponse) -> EnvResponse:
        if len(response):
            self._masks[response.rows] = mask_of(response.first_observation)
        return response

    def _can_be_replaced(self, action: Action, rows: IntArray) -> bool:
        """Return whether these are actions of the space for rows that exist, once each."""
        try:
            check_actions(self._space, action)
        except ActionError:
            return False
        count = len(next(iter(action.values()))) if isinstance(action, dict) else len(action)
        whole = rows.dtype.kind in "iu" and rows.ndim == 1 and len(rows) == count
        return whole and bool(((rows >= 0) & (rows < len(self._masks))).all())

    def _replaced(self, action: Action, rows: IntArray) -> Action:
        masks = self._masks[rows]
        if not isinstance(action, dict):
            return _allowed(self._space, action, masks)
        assert isinstance(self._space, spaces.Dict), "a dict of actions needs a Dict space"
        sent = {}
        begin = 0
        for key, part in self._space.spaces.items():
            end = begin + sum(choice_sizes(part))
            sent[key] = _allowed(part, action[key], masks[:, begin:end])
            begin = end
        return sent


def _allowed(space: Space, action: Array, masks: BoolArray) -> Array:
    """Actions [R, ...] of one part, with the next allowed choice where one is forbidden."""
    sizes = choice_sizes(space)
    if not sizes:
        return action
    chosen = (action - first_action(space)).astype(np.int64).reshape(len(action), len(sizes))
    parts = np.split(masks, np.cumsum(sizes)[:-1], axis=1)
    for number, (mask, size) in enumerate(zip(parts, sizes, strict=True)):
        order = (chosen[:, number : number + 1] + np.arange(size)) % size
        next_allowed = np.take_along_axis(mask, order, axis=1).argmax(axis=1)
        chosen[:, number] = np.take_along_axis(order, next_allowed[:, None], axis=1)[:, 0]
    sent = chosen.reshape(action.shape) + first_action(space)
    return sent.astype(action.dtype)


def has_masks(environment: Environment) -> bool:
    """Return whether an environment shows masks of its own actions under `action_mask`."""
    part = environment.spaces.observation.spaces.get(ACTION_MASK)
    sizes = choice_sizes(environment.spaces.action)
    return part is not None and int(np.prod(part.shape or ())) == sum(sizes) > 0


def mask_of(observation: Observation) -> BoolArray:
    """The masks, [R, M]."""
    shown = observation[ACTION_MASK]
    return np.asarray(shown.reshape(len(shown), -1) > 0)


def with_allowed_actions(environment: Environment) -> Environment:
    """The environment, which gets allowed actions alone if it has masks."""
    return AllowedActions(environment) if has_masks(environment) else environment
