"""Action masks that a Gymnasium environment gives beside its observations, as a part of them."""

from collections.abc import Callable, Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.errors import ConfigurationError, EnvironmentFault
from coach_rl.core.records import ACTION_MASK, BoolArray
from coach_rl.core.shown_text import shown_value
from coach_rl.core.spaces import Space
from coach_rl.environments.gymnasium.layout import PLAIN_KEY, as_dict, column_of, layout_of
from coach_rl.environments.gymnasium.rows import flag, start_pair, step_values

INFO = "info:"
METHOD = "method:"
"""Beginnings of the sources of masks."""


def shown_mask(given: object, sizes: tuple[int, ...], source: str) -> BoolArray:
    """A mask [M] as an environment gives it: one array, or one for each choice or part of several.

    Raises:
        EnvironmentFault: It has another number of entries than there are actions, or one that is no
            number.
    """
    whole = column_of(given)
    several = given if np.iterable(given) else ()  # which may have different lengths
    parts = [whole] if whole.ndim == 1 else [column_of(part) for part in several]
    ends = set(np.cumsum([part.size for part in parts]).tolist())
    if not {sum(sizes)} <= ends <= set(np.cumsum(sizes).tolist()) or any(
        part.ndim != 1 or part.dtype.kind not in "biuf" or np.isnan(part).any() for part in parts
    ):
        raise EnvironmentFault(
            f"the action mask of '{source}' must have {sum(sizes)} entries, one number for each "
            f"action (of several choices, in one array for each), got {shown_value(given, 80)}"
        )
    return np.concatenate(parts) > 0


def with_mask_space(shown: Space, sizes: tuple[int, ...], source: str) -> spaces.Dict:
    """The space of observations with a mask; a plain observation moves under `observation`.

    Raises:
        ConfigurationError: There is nothing to mask, or a mask already.
    """
    if not sizes:
        raise ConfigurationError(
            f"action_mask='{source}' needs discrete actions to mask; leave it out"
        )
    parts = dict(shown.spaces) if isinstance(shown, spaces.Dict) else {PLAIN_KEY: shown}
    if ACTION_MASK in parts:
        raise ConfigurationError(
            f"action_mask='{source}': the observation has the key '{ACTION_MASK}' already; leave "
            "action_mask out"
        )
    return spaces.Dict({**parts, ACTION_MASK: spaces.MultiBinary(sum(sizes))})


def with_mask(observation: object, mask: BoolArray) -> dict[str, object]:
    """An observation of `with_mask_space`."""
    parts = observation if isinstance(observation, dict) else {PLAIN_KEY: observation}
    return {**parts, ACTION_MASK: mask.astype(np.int8)}


class ShownMasks(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Shows the environment's action masks under the observation key `action_mask`.

    A plain observation moves under `observation`.

    Args:
        env: The environment.
        source: `info:KEY` for an info, `method:NAME` for a method without arguments.

    Raises:
        ConfigurationError: Its actions can't be masked, it has no such method, or its observation
            has an `action_mask` already.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], *, source: str) -> None:
        super().__init__(env)
        kind, _, name = source.partition(":")
        self._source = source
        self._key = name if f"{kind}:" == INFO else None
        flat = layout_of(env.observation_space, env.action_space, level=str(env.unwrapped)).spaces
        self._sizes = choice_sizes(flat.action)
        self._method: Callable[[], object]
        if self._key is None:
            try:
                self._method = env.get_wrapper_attr(name)
            except AttributeError as error:
                raise ConfigurationError(
                    f"action_mask='{source}': the environment {env.unwrapped} has no such method"
                ) from error
        self.observation_space = with_mask_space(env.observation_space, self._sizes, source)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        observation, info = start_pair(self.env.reset(seed=seed, options=options))
        return self._with_mask(observation, info, is_final=False), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = step_values(self.env.step(action))
        shown = self._with_mask(observation, info, is_final=flag(terminated, "terminated"))
        return shown, reward, terminated, truncated, info

    def _with_mask(
        self, observation: Any, info: Mapping[str, object], *, is_final: bool
    ) -> dict[str, object]:
        """The observation with the mask; after a terminated step an info may lack it."""
        if self._key is None:
            given = self._method()
        elif self._key in as_dict(info, "the info"):
            given = info[self._key]
        elif is_final:
            given = np.zeros(sum(self._sizes), np.bool_)
        else:
            raise EnvironmentFault(
                f"the info has no '{self._key}', which action_mask='{self._source}' names; "
                f"it has {', '.join(map(str, info)) or 'nothing'}"
            )
        return with_mask(observation, shown_mask(given, self._sizes, self._source))
