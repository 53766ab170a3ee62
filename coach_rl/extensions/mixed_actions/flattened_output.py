"""Parts of actions of any kind and shape as one flat array, and an output filter that acts so."""

from collections.abc import Mapping

import numpy as np
from gymnasium import spaces

from coach_rl.agents.ppo_agent import PPOAgentParameters
from coach_rl.core.box_ranges import clipped_to_space
from coach_rl.core.discrete_actions import choice_sizes, first_action
from coach_rl.core.errors import ConfigurationError, SpaceError, UnknownNameError
from coach_rl.core.interfaces import OutputFilter
from coach_rl.core.random_actions import uniform_size
from coach_rl.core.records import Action, Array
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.spaces import Space, is_float_box
from coach_rl.extensions.mixed_actions.mixed_space import MixedSpace

Arguments = Mapping[str, tuple[str, int]]
"""Continuous parts of a Dict of actions: the discrete part, and the action of it, that each is an
argument of."""
DISCRETE = (spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
_WHOLE = "action"


class FlatParts:
    """The elements of several spaces in one array [R, A].

    Those of discrete parts come first, those of Boxes follow, each in the given order.

    Args:
        parts: Spaces by name: Discrete, MultiDiscrete, MultiBinary and Boxes of floats.
        arguments: Which of the Boxes are arguments of an action.
    """

    def __init__(self, parts: Mapping[str, Space], arguments: Arguments) -> None:
        discrete = {key: part for key, part in parts.items() if isinstance(part, DISCRETE)}
        boxes = {key: part for key, part in parts.items() if isinstance(part, spaces.Box)}
        self.parts: dict[str, Space] = {**discrete, **boxes}
        self.counts_from_0 = bool(discrete and boxes)
        self.space: Space
        """MultiDiscrete or Box; MixedSpace, whose choices count from 0, where there are both."""
        if not boxes:
            self.space = _joined_discrete(discrete)
        elif not discrete:
            self.space = _joined_boxes(boxes)
        else:
            choices = spaces.MultiDiscrete(_joined_discrete(discrete).nvec)
            places = dict(
                zip(discrete, np.cumsum([0, *map(uniform_size, discrete.values())]), strict=False)
            )
            owners = {
                key: (int(places[owner]), value - int(first_action(parts[owner])))
                for key, (owner, value) in arguments.items()
            }
            groups = tuple((uniform_size(box), owners.get(key)) for key, box in boxes.items())
            self.space = MixedSpace(choices, _joined_boxes(boxes), groups)

    def split(self, flat: Array) -> dict[str, Array]:
        """The parts [R, ...] of flat actions, by name."""
        found = {}
        begin = 0
        for key, part in self.parts.items():
            end = begin + uniform_size(part)
            values = flat[:, begin:end].reshape(len(flat), *(part.shape or ()))
            if self.counts_from_0:
                values = values + first_action(part)
            found[key] = values.astype(part.dtype, copy=False)
            begin = end
        return found

    def joined(self, parts: Mapping[str, Array]) -> Array:
        """The flat actions [R, A] of parts."""
        columns = []
        for key, part in self.parts.items():
            values = parts[key] - first_action(part) if self.counts_from_0 else parts[key]
            columns.append(values.reshape(len(values), -1))
        dtype = np.float32 if self.space.dtype is None else self.space.dtype
        return np.concatenate(columns, axis=1).astype(dtype, copy=False)


class FlattenedOutput(Saved):
    """An OutputFilter behind which the agent acts in the flat space of all parts of its actions.

    Args:
        inner: What actions pass next, from `space` on.
        space: The space that `inner` leaves to the agent.
        arguments: Which parts are arguments of an action.
        agent: The agent's name, for messages.

    Raises:
        SpaceError: A part is of another kind than those of `FlatParts`.
        ConfigurationError: The arguments don't fit the space.
    """

    SAVED = (SavedAttribute("_inner", inline=True),)

    def parts(self) -> dict[str, object]:
        return {"inner": self._inner}

    def __init__(
        self, inner: OutputFilter, space: Space, arguments: Arguments, *, agent: str
    ) -> None:
        self._inner = inner
        self.space = space
        parts = space.spaces if isinstance(space, spaces.Dict) else {_WHOLE: space}
        for key, part in parts.items():
            if not isinstance(part, DISCRETE) and not is_float_box(part):
                raise SpaceError(
                    f"no stochastic policy for the part '{key}' of actions, {shown(part)}; allowed:"
                    " Box of floats, Discrete, MultiDiscrete, MultiBinary; integers between bounds "
                    "are a MultiDiscrete with `start`"
                )
        if not parts:
            raise SpaceError(f"agent '{agent}' has a Dict of actions without parts; add one")
        for key in arguments:
            _check_argument(key, arguments, space, agent=agent)
        self.flat = FlatParts(parts, arguments)
        self.agent_space = self.flat.space

    def apply(self, action: Action) -> Action:
        assert not isinstance(action, dict), "flat actions are one array"
        found = self.flat.split(action)
        given = found if isinstance(self.space, spaces.Dict) else found[_WHOLE]
        return self._inner.apply(clipped_to_space(self.space, given))

    def inverse(self, action: Action) -> Action:
        back = self._inner.inverse(action)
        return self.flat.joined(back if isinstance(back, dict) else {_WHOLE: back})


def flattened(inner: OutputFilter, params: PPOAgentParameters) -> FlattenedOutput:
    """The filter behind which a PPO agent acts in one flat space."""
    return FlattenedOutput(inner, inner.agent_space, params.arguments, agent=params.name)


def _check_argument(key: str, arguments: Arguments, space: Space, *, agent: str) -> None:
    """Raise `ConfigurationError` unless a part can be an argument of the action it is given to."""
    where = f"in `arguments` of agent '{agent}'"
    if not isinstance(space, spaces.Dict):
        raise ConfigurationError(
            f"'{key}' {where} names a part of a Dict of actions, and its actions are "
            f"{shown(space)}; leave `arguments` out"
        )
    owner, action = arguments[key]
    for name in (key, owner):
        if name not in space.spaces:
            raise UnknownNameError("part of the actions", name, space.spaces, where=where)
    given = space[key]
    chosen = space[owner]
    if not isinstance(given, spaces.Box):
        raise ConfigurationError(
            f"'{key}' {where} is {shown(given)}; only Boxes can be arguments of an action, "
            "discrete parts always count"
        )
    if not isinstance(chosen, spaces.Discrete):
        depends = " and an argument itself" if owner in arguments else ""
        raise ConfigurationError(
            f"'{key}' {where} belongs to '{owner}', which is {shown(chosen)}{depends}; it must "
            "belong to an action of a Discrete part"
        )
    first, last = int(chosen.start), int(chosen.start + chosen.n - 1)
    if not first <= action <= last:
        raise ConfigurationError(
            f"'{key}' {where} belongs to action {action} of '{owner}', which has the actions "
            f"{first} to {last}"
        )


def shown(space: Space) -> str:
    """A space in one line."""
    return " ".join(str(space).split())


def _joined_boxes(boxes: Mapping[str, spaces.Box]) -> spaces.Box:
    return spaces.Box(
        np.concatenate([box.low.reshape(-1) for box in boxes.values()]),
        np.concatenate([box.high.reshape(-1) for box in boxes.values()]),
        dtype=np.result_type(*[box.dtype for box in boxes.values()]).type,
    )


def _joined_discrete(parts: Mapping[str, Space]) -> spaces.MultiDiscrete:
    counts = [count for part in parts.values() for count in choice_sizes(part)]
    starts = [
        np.broadcast_to(first_action(part), part.shape or ()).ravel() for part in parts.values()
    ]
    return spaces.MultiDiscrete(
        np.array(counts, np.int64), start=np.concatenate(starts).astype(np.int64)
    )
