"""Actions by parts: the keys of an action space that each member of a group acts under."""

from collections.abc import Mapping
from posixpath import commonpath

import numpy as np
from gymnasium import spaces

from coach_rl.core.random_actions import actions_from_uniform, uniform_size
from coach_rl.core.records import Action, Array
from coach_rl.core.spaces import Space, is_float_box
from coach_rl.extensions.mixed_actions.flattened_output import DISCRETE, FlatParts

WHOLE = ""
"""Key of an action that has no parts."""


class ActionPart:
    """Some keys of a Dict action space as the space that one agent acts in.

    One key is the agent's space unchanged. Several keys become one space that any agent can act in,
    with the elements of the keys side by side: Boxes of floats a flat Box; Discrete, MultiDiscrete
    and MultiBinary a flat MultiDiscrete. Keys of both kinds stay a Dict, which is for agents that
    can act in one, by their names without a prefix that all share.

    Args:
        keys: The keys, in this order; one at least.
        whole: The space they belong to.
    """

    def __init__(self, keys: tuple[str, ...], whole: spaces.Dict) -> None:
        self.keys = keys
        parts: dict[str, Space] = {key: whole[key] for key in keys}
        self.idle = {key: idle_action(part) for key, part in parts.items()}
        """Filler actions [1, ...] by key, where the agent does not act."""
        self.names: dict[str, str] = {}
        """The agent's names of keys that stay a Dict."""
        self.flat: FlatParts | None = None
        """The form of keys that become one array."""
        if len(keys) == 1:
            self.space = parts[keys[0]]
        elif all(isinstance(part, DISCRETE) for part in parts.values()) or all(
            map(is_float_box, parts.values())
        ):
            self.flat = FlatParts(parts, {})
            self.space = self.flat.space
        else:
            prefix = f"{commonpath(keys)}/"
            self.names = {key: key.removeprefix(prefix) for key in keys}
            self.space = spaces.Dict({self.names[key]: part for key, part in parts.items()})

    def split(self, action: Action) -> dict[str, Array]:
        """The agent's actions [D, ...] by key, [D, ...] each."""
        if isinstance(action, dict):
            return {key: action[name] for key, name in self.names.items()}
        return {self.keys[0]: action} if self.flat is None else self.flat.split(action)


def by_part(space: Space) -> spaces.Dict:
    """The elements of a flat Box or MultiDiscrete as parts named by their numbers, a Dict as it is.

    Any other space is one part, `WHOLE`.
    """
    match space:
        case spaces.Box() if len(space.shape) == 1:
            return spaces.Dict(
                {
                    str(i): spaces.Box(
                        space.low[i : i + 1], space.high[i : i + 1], dtype=space.dtype.type
                    )
                    for i in range(space.shape[0])
                }
            )
        case spaces.MultiDiscrete() if len(space.shape) == 1:
            return spaces.Dict(
                {
                    str(i): spaces.Discrete(int(n), start=int(start))
                    for i, (n, start) in enumerate(zip(space.nvec, space.start, strict=True))
                }
            )
        case spaces.Dict():
            return space
    return spaces.Dict({WHOLE: space})


def whole_action(parts: Mapping[str, Array], space: Space | None) -> Action:
    """The actions [R, ...] in their own space, from those of the parts of `by_part`."""
    if WHOLE in parts:
        return parts[WHOLE]
    if space is None or isinstance(space, spaces.Dict):
        return dict(parts)
    columns = [parts[str(number)] for number in range(len(parts))]
    joined = np.stack([column.reshape(len(column)) for column in columns], axis=1)  # [R, A]
    return joined.astype(space.dtype, copy=False)


def idle_action(space: Space) -> Array:
    """A filler action for members that don't act, [1, ...]: the middle of the space."""
    action = actions_from_uniform(space, np.full((1, uniform_size(space)), 0.5))
    assert not isinstance(action, dict), "an environment's action space is flat"
    return action
