"""Mapping of Gymnasium's values: nested dicts and tuples to flat path names, infos to arrays."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from gymnasium import spaces

from coach_rl.core.equal_spaces import cast_tolerance, loss_of_cast, nested
from coach_rl.core.errors import EnvironmentFault, NonFiniteError, SpaceError, warn
from coach_rl.core.records import Action, Array, Observation
from coach_rl.core.shown_text import shown_level, shown_value
from coach_rl.core.spaces import EnvironmentSpaces, Space

PLAIN_KEY = "observation"
"""Key of an observation that is no dict."""
NESTED = (spaces.Dict, spaces.Tuple)
SUPPORTED = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)

FLOATS_COMPARED = 64
"""Steps of a row, beside all starts, in which casts of floats are compared."""
_MISSING = object()
Leaves = list[Any]
"""One row's values in the order of the flat keys."""
Info = dict[str, object]
"""One row's info: numbers, booleans, strings and arrays by flat name."""
_PLAIN = {bool, int, float, str}
_NUMBERS = {bool, float}
"""Kinds of values that form an array whatever they are; integers may be too large."""
SUCCESS = ("is_success", "success")
"""Keys of the info that give success rates."""


@dataclass(frozen=True)
class Layout:
    """Source and destination of each flat array."""

    spaces: EnvironmentSpaces
    """Flat observation and action space of one row."""
    observation_paths: tuple[tuple[str, ...], ...]
    """The keys that lead to each flat observation, those of a tuple its numbers; an empty path is
    the observation itself."""
    action_paths: tuple[tuple[str, ...], ...]
    """The same for the action."""

    def leaves(self, observation: object, step: int = 0) -> Leaves:
        """One row's observation as a list of arrays.

        Args:
            observation: What the environment returned.
            step: See `check_cast`.

        Raises:
            EnvironmentFault: A key is missing, a shape or kind differs from the space's, e.g.
                float for int, or the space's dtype has no such number.
        """
        found: Leaves = []
        for path, key, shape, kinds in self._wanted:
            leaf: Any = observation
            for name in path:
                leaf = entry(leaf, name)
            if type(leaf) is not np.ndarray:
                leaf = as_array(leaf, key, observation)
            if leaf.shape != shape:
                raise EnvironmentFault(
                    f"observation '{key}' has shape {leaf.shape}, its space {shape}"
                )
            if leaf.dtype not in kinds and (
                step <= FLOATS_COMPARED or leaf.dtype.kind != "f" or kinds[0].kind != "f"
            ):
                self.check_cast(key, leaf[None], step)
            found.append(leaf)
        return found

    def check_cast(self, key: str, values: Array, step: int) -> None:
        """Compare observations [R, ...] with what they are in the dtype of their space.

        Args:
            key: Their flat name.
            values: As the environment returned them.
            step: The rows' number of steps, 0 at a start; of floats the first `FLOATS_COMPARED`
                are compared.

        Raises:
            EnvironmentFault: They are of another kind, or the dtype has no such integer.
            NonFiniteError: Floats become infinite.

        Warns:
            CoachWarning: Floats lose more than a millionth of their range; once for each key.
        """
        space = self.spaces.observation[key]
        given = values.dtype
        kinds = self._wanted[list(self.spaces.observation.spaces).index(key)][-1]
        wanted = np.dtype(space.dtype)
        if given in kinds:
            return
        if given.kind not in ("biuf" if wanted.kind == "f" else "biu"):
            raise EnvironmentFault(f"observation '{key}' is {given}, its space {wanted}")
        if wanted.kind == "f" and step > FLOATS_COMPARED:
            return
        if np.can_cast(given, wanted, "safe"):
            kinds.append(given)
            return
        lacking = loss_of_cast(values, wanted)
        loss = lacking or loss_of_cast(values, wanted, cast_tolerance(space))
        if loss is None:
            return
        row = f" of row {loss[0]}" if len(values) > 1 else ""
        what = f"observation '{key}'{row} is {loss[1]}"
        if lacking:
            error = NonFiniteError if wanted.kind == "f" else EnvironmentFault
            raise error(f"{what}; declare its space in a dtype that has the number, or correct it")
        kinds.append(given)
        warn(
            f"{what}; the dtype of its space rounds it by more than a millionth of its range: "
            "scale it or subtract an origin in the environment (the run continues)"
        )

    @cached_property
    def _wanted(self) -> list[tuple[tuple[str, ...], str, tuple[int, ...], list[np.dtype[Any]]]]:
        """Keys, flat name and shape of each flat observation, and its dtypes.

        The dtypes need no comparison with that of the space, which is the first.
        """
        parts = self.spaces.observation.spaces.items()
        return [
            (path, key, space.shape or (), [np.dtype(space.dtype)])
            for path, (key, space) in zip(self.observation_paths, parts, strict=True)
        ]

    def buffers(self, count: int) -> Observation:
        """Empty arrays for that many rows."""
        return {key: np.empty((count, *shape), kinds[0]) for _, key, shape, kinds in self._wanted}

    @cached_property
    def action_parts(self) -> list[Space]:
        """The spaces of the flat parts of an action, in the order of `action_paths`."""
        space = self.spaces.action
        return list(space.spaces.values()) if isinstance(space, spaces.Dict) else [space]

    def action_arrays(self, action: Action) -> list[Array]:
        """The flat arrays of a batch of actions, [R, ...] each, in the order of `action_paths`."""
        return list(action.values()) if isinstance(action, dict) else [action]

    def nested_action(self, leaves: Sequence[object]) -> object:
        """One row's action in the form of the Gymnasium environment."""
        if self._is_plain:
            return leaves[0]
        named = dict(zip(map("/".join, self.action_paths), leaves, strict=True))
        return nested(self.spaces.own_action, lambda name, space: _taken(named[name], space))

    @cached_property
    def _is_plain(self) -> bool:
        """True if actions have one part, in the form that Gymnasium gives to it."""
        space = self.spaces.action
        is_number = isinstance(space, spaces.Box) and not space.shape
        return self.action_paths == ((),) and not is_number


def layout_of(observation_space: Space | None, action_space: Space | None, *, level: str) -> Layout:
    """The layout for a Gymnasium environment's spaces.

    Raises:
        SpaceError: A space is missing, or of a kind that has no array form here (Tuple, Text,
            Graph, ...).
    """
    level = shown_level(level)
    for name, space in (("observation_space", observation_space), ("action_space", action_space)):
        if not isinstance(space, spaces.Space):
            raise SpaceError(
                f"'{level}' has no {name}, got {space!r}; set it to one of gymnasium.spaces in the "
                "class or in __init__"
            )
    assert observation_space is not None
    assert action_space is not None
    observed, observation_paths = _flat(
        observation_space,
        what=f"the observation of '{level}'",
        wrapper="a wrapper (e.g. gymnasium.wrappers:FlattenObservation)",
    )
    taken, action_paths = _flat(
        action_space,
        what=f"the action of '{level}'",
        wrapper="a wrapper derived from gymnasium.ActionWrapper",
    )
    is_nested = isinstance(action_space, NESTED)
    return Layout(
        spaces=EnvironmentSpaces(
            observation=observed,
            action=taken if is_nested else action_space,
            nested=action_space if is_nested else None,
        ),
        observation_paths=observation_paths,
        action_paths=action_paths,
    )


def _flat(
    space: Space, *, what: str, wrapper: str
) -> tuple[spaces.Dict, tuple[tuple[str, ...], ...]]:
    """The simple spaces in `space` by flat name, and the keys that lead to each of them."""
    found = list(_simple_parts(space))
    if not found:
        raise SpaceError(f"{what} is {space}, which has no parts; give it one")
    for path, part in found:
        for key in path:
            if not isinstance(key, str):
                raise SpaceError(
                    f"{what} has a Dict space with the key {shown_value(key, 200)} of type "
                    f"{type(key).__name__}; keys must be strings: rename them with {wrapper}"
                )
        if not isinstance(part, SUPPORTED):
            where = f" at '{'/'.join(path)}'" if path else ""
            raise SpaceError(
                f"{what} has a {type(part).__name__} space{where}; allowed: Box, Discrete, "
                "MultiDiscrete, MultiBinary and Dict or Tuple of these; turn it into one of them "
                f"with {wrapper}"
            )
    names = ["/".join(path) or PLAIN_KEY for path, _ in found]
    paths, parts = zip(*found, strict=True)
    if len(set(names)) != len(names):
        raise SpaceError(f"{what} has keys that fall together when flattened: {sorted(names)}")
    flat = spaces.Dict(dict(zip(names, parts, strict=True)))
    by_name = dict(zip(names, paths, strict=True))
    return flat, tuple(by_name[name] for name in flat.spaces)


def _simple_parts(
    space: Space, path: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], Space]]:
    """The spaces below a space that are no Dict or Tuple, with the keys that lead to them."""
    if isinstance(space, NESTED):
        for key, part in _parts(space).items():
            yield from _simple_parts(part, (*path, key))
    else:
        yield path, space


def _parts(space: "spaces.Dict | spaces.Tuple[Any]") -> dict[str, Space]:
    """The parts of a Dict, or those of a Tuple by their numbers."""
    if isinstance(space, spaces.Dict):
        return dict(space.spaces)
    return {str(number): part for number, part in enumerate(space.spaces)}


def _taken(leaf: object, space: Space) -> object:
    """A part of one row's action as Gymnasium's space of it contains it."""
    return np.asarray(leaf) if isinstance(space, spaces.Box) else leaf


def entry(values: object, name: str) -> Any:
    """The value of a dict under a key, or of a tuple at a number; `_MISSING` if there is none."""
    if isinstance(values, Mapping):
        return values.get(name, _MISSING)
    if isinstance(values, tuple) and name.isdecimal() and int(name) < len(values):
        return values[int(name)]
    return _MISSING


def as_array(leaf: object, key: str, observation: object) -> Array:
    """The part of an observation under a flat key, as an array.

    Raises:
        EnvironmentFault: There is none, or it has no array form.
    """
    if leaf is _MISSING:
        raise EnvironmentFault(
            f"the observation has no '{key}', which its space has; got {_described(observation)}"
        )
    array = column_of(leaf)
    if array.dtype.kind in "OUSV":
        raise EnvironmentFault(f"observation '{key}' must be an array, got {_described(leaf)}")
    return array


def column_of(values: object) -> Array:
    """The values as an array; lists of different lengths have none, and become None in one."""
    try:
        return np.asarray(values)
    except ValueError:
        return np.asarray(None)


def _described(value: object) -> str:
    """The kind of a value, or its keys or length, or itself where it is None."""
    if isinstance(value, Mapping):
        return f"a dict with the keys {sorted(map(str, value))}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return "None" if value is None else f"a {type(value).__name__}"


def as_dict(values: object, name: str) -> Mapping[Any, Any]:
    """The values, if they are a dict.

    Raises:
        EnvironmentFault: They are none.
    """
    if not isinstance(values, Mapping):
        raise EnvironmentFault(f"{name} must be a dict, got {_described(values)}")
    return values


def flat_info(info: Mapping[str, object], prefix: str = "") -> Info:
    """The parts of an info dict that have an array form, nested names joined by slashes.

    Numbers, booleans, strings and copies of numeric arrays are kept; any other object is left out.

    Raises:
        EnvironmentFault: It is no dict, or the success is no number.
    """
    flat: Info = {}
    for key, value in as_dict(info, "the info").items():
        name = f"{prefix}{key}"
        if type(value) in _PLAIN and name not in SUCCESS:
            flat[name] = value
            continue
        if name in SUCCESS and not _is_success(value):
            raise EnvironmentFault(
                f"info['{name}'] must be a number or a bool, got {shown_value(value, 200)}"
            )
        if isinstance(value, Mapping):
            flat |= flat_info(value, f"{name}/")
        elif isinstance(value, np.ndarray | np.void):  # the environment may change it later
            if not value.dtype.hasobject:
                flat[name] = value.copy()
        elif isinstance(value, (bool, int, float, str, np.generic)):
            flat[name] = value
    return flat


def _is_success(value: object) -> bool:
    """Return whether a value can be a success, or a degree of success."""
    if not isinstance(value, int | float | np.generic | np.ndarray):
        return False
    number = np.asarray(value)
    return not number.shape and number.dtype.kind in "biuf" and bool(np.isfinite(number))


def batched_infos(infos: Sequence[Info]) -> dict[str, Array]:
    """The rows' infos as arrays, [R, ...] each.

    As in Gymnasium's vector environments, a name that only some rows have gets zeros for the others
    and a boolean array `_<name>` of the rows that have it. A name whose shape differs between
    the rows, or with an integer of more than 64 bits, has no array form and is left out.
    """
    batch: dict[str, Array] = {}
    if not any(infos):
        return batch
    for name in dict.fromkeys(name for info in infos for name in info):
        kind = type(infos[0].get(name))
        if kind in _NUMBERS and all(type(info.get(name)) is kind for info in infos):
            batch[name] = np.array([info[name] for info in infos])
            continue
        values = [np.asarray(info[name]) if name in info else None for info in infos]
        known = [value for value in values if value is not None]
        if len({value.shape for value in known}) > 1 or any(v.dtype.hasobject for v in known):
            continue
        if len(known) == len(values):
            batch[name] = np.stack(known)
            continue
        blank = np.zeros_like(known[0])
        batch[name] = np.stack([blank if value is None else value for value in values])
        batch[f"_{name}"] = np.array([value is not None for value in values])
    return batch
