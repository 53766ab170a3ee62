"""State by name: a class lists the attributes that a checkpoint keeps.

    class Rows(Saved):
        SAVED = ("noise", "_level", SavedAttribute("_rng", key="generator"))

The state has the keys `noise`, `level` and `generator`. A value is a number, a text, None, an
array, a tensor, a random generator of numpy or torch, an object with `state_dict` and
`load_state_dict` (a module or an optimiser of torch, too), or a list or dict of these.
"""

from dataclasses import KW_ONLY, dataclass, replace
from functools import cache
from typing import Any, ClassVar, TypeAlias

import numpy as np

from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.core.state import State


@dataclass(frozen=True)
class SavedAttribute:
    """An attribute that needs more than its name to be saved."""

    name: str
    """The attribute."""
    _: KW_ONLY
    key: str = ""
    """Its key in the state; empty: the name without leading underscores."""
    optional: bool = False
    """True if it is left out of the state while it is None. An object that was saved and is None
    here stays None."""
    varies: bool = False
    """True if the saved value, a plain one, may have another form; it replaces the one here."""
    inline: bool = False
    """True if its state, a dict, is merged into the owner's state instead of having a key there."""
    policy: bool | None = None
    """True if an agent needs it for acting: other processes, and runs that load the agent, get it
    then. None: that is not known, and such agents of users are refused there."""


SavedNames: TypeAlias = tuple[str | SavedAttribute, ...]
"""The type of `SAVED`. Type checkers need it where subclasses list attributes of their own, too:
`SAVED: ClassVar[SavedNames] = (...)`."""


class Saved:
    """An object whose state is the attributes that `SAVED` lists, in its bases and its own class.

    Neither the state nor what is loaded from it shares memory with the object. Loading fills
    arrays, tensors, generators and objects in place. A saved value must have the form of the one
    here: the shape and dtype of an array, the length of a list, the keys of a dict.
    """

    SAVED: ClassVar[SavedNames] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        listed: object = cls.SAVED
        if isinstance(listed, str):
            raise ConfigurationError(
                f"{cls.__name__}.SAVED must be a tuple, got {listed!r}; write ({listed!r},)"
            )

    def state_dict(self) -> State:
        """The listed attributes by key."""
        state: State = {}
        for each in _attributes(self):
            value = getattr(self, each.name)
            if value is None and (each.optional or each.inline):
                continue
            state |= _copied(value) if each.inline else {each.key: _copied(value)}
        return state

    def load_state_dict(self, state: State) -> None:
        """Load a state made by `state_dict` of an equally built object.

        Raises:
            CheckpointError: An attribute is missing, or has another form.
        """
        owner = type(self).__name__
        for each in _attributes(self):
            now = getattr(self, each.name)
            path = f"{owner}.{each.key}"
            was_object = each.optional and isinstance(state.get(each.key), dict)
            if now is None and (each.inline or was_object):
                continue
            if each.inline:
                loaded = _copied(state) if each.varies else _loaded(now, state, path, extra=True)
            elif each.key not in state and each.optional and not _has_state(now):
                loaded = None
            else:
                saved = _part(state, each.key, owner)
                loaded = _copied(saved) if each.varies else _loaded(now, saved, path)
            if loaded is not now:
                setattr(self, each.name, loaded)
        self.note_loaded()

    def note_loaded(self) -> None:
        """Recompute derived attributes; called once all listed ones are loaded."""


def policy_state(owner: Saved) -> State:
    """The listed attributes that acting needs, by key; of one that lists such itself, these."""
    state: State = {}
    for each in _attributes(owner):
        if each.policy:
            value = getattr(owner, each.name)
            if value is None and each.optional:
                continue
            value = policy_state(value) if _lists_policy(value) else _copied(value)
            state |= value if each.inline else {each.key: value}
    return state


def load_policy_state(owner: Saved, state: State) -> None:
    """Load the attributes that acting needs from a `policy_state` or a `state_dict`.

    Raises:
        CheckpointError: One is missing, or has another form; others may already be loaded.
    """
    for each in _attributes(owner):
        if each.policy:
            now = getattr(owner, each.name)
            path = each.key
            if now is None and each.optional:
                continue
            saved = state if each.inline else _part(state, each.key, type(owner).__name__)
            if _lists_policy(now):
                load_policy_state(now, saved)
            elif (loaded := _loaded(now, saved, path, extra=each.inline)) is not now:
                setattr(owner, each.name, loaded)
    owner.note_loaded()


def _lists_policy(value: object) -> bool:
    return isinstance(value, Saved) and any(each.policy for each in _attributes(value))


def _attributes(owner: object) -> tuple[SavedAttribute, ...]:
    kind: type = type(owner)
    return _listed(kind)


@cache
def _listed(cls: type) -> tuple[SavedAttribute, ...]:
    """The attributes that a class and its bases list; the last entry of each counts."""
    found: dict[str, SavedAttribute] = {}
    for kind in reversed(cls.__mro__):
        for item in vars(kind).get("SAVED", ()):
            each = item if isinstance(item, SavedAttribute) else SavedAttribute(item)
            found[each.name] = replace(each, key=each.key or each.name.lstrip("_"))
    return tuple(found.values())


def _has_state(value: Any) -> bool:
    return hasattr(value, "load_state_dict")


def _copied(value: Any) -> Any:
    """The state of a value, which shares no memory with it."""
    if isinstance(value, np.ndarray):
        return value.copy()
    if _has_state(value):
        state: State = value.state_dict()
        return _copied(state) if _is_of_torch(value) else state
    match value:
        case np.random.Generator():
            return generator_state(value)
        case dict():
            return {str(key): _copied(part) for key, part in value.items()}
        case list():
            return [_copied(part) for part in value]
    if hasattr(value, "clone"):
        return value.detach().clone()
    return value.get_state() if hasattr(value, "get_state") else value  # a generator of torch


def _loaded(now: Any, saved: Any, path: str, *, extra: bool = False) -> Any:
    """`now`, filled with the saved state, or its replacement.

    Args:
        now: The value here.
        saved: Its state in the checkpoint.
        path: Its name in messages.
        extra: Whether a dict may have been saved with more keys.
    """
    if _filled(now, saved):
        return now
    if now is None or (saved is None and not _has_state(now)):
        return _copied(saved)
    found, wanted = _form(saved, now, extra=extra), _form(now, now, extra=extra)
    if found != wanted:
        raise CheckpointError(
            f"{path} was saved with {found} and has {wanted} here; use the parameters that it was "
            "saved with"
        )
    if isinstance(now, dict):
        parts = {key: _loaded(part, _part(saved, key, path), path) for key, part in now.items()}
        return now if all(parts[key] is part for key, part in now.items()) else parts
    if isinstance(now, list):
        return [_loaded(part, old, path) for part, old in zip(now, saved, strict=True)]
    return saved


def _filled(now: Any, saved: Any) -> bool:
    """Fill an array, an object, a generator or a tensor; False for others, or another form."""
    if isinstance(now, np.ndarray):
        fits = isinstance(saved, np.ndarray) and _is_alike(now, saved)
        if fits:
            now[...] = saved
        return fits
    if _has_state(now) and isinstance(saved, dict):
        now.load_state_dict(_for_torch(saved) if _is_of_torch(now) else saved)
    elif isinstance(now, np.random.Generator) and isinstance(saved, dict):
        load_generator_state(now, saved)
    elif hasattr(now, "set_state") and hasattr(saved, "clone"):
        now.set_state(saved.clone())
    elif hasattr(now, "copy_") and hasattr(saved, "clone") and _is_alike(now, saved):
        now.detach().copy_(saved)
    else:
        return False
    return True


def _is_alike(now: Any, saved: Any) -> bool:
    return bool(now.shape == saved.shape and now.dtype == saved.dtype)


def _part(state: State, key: str, owner: str) -> Any:
    if key not in state:
        raise CheckpointError(
            f"the saved state of {owner} has no '{key}'; use the version of coach_rl and the "
            "parameters that it was saved with"
        )
    return state[key]


def _form(value: Any, now: Any, *, extra: bool) -> str:
    """Description that must be equal for a value and for `now`, which it is loaded into."""
    if isinstance(now, np.ndarray) or hasattr(now, "copy_"):
        return f"shape {tuple(np.shape(value))}, {getattr(value, 'dtype', type(value).__name__)}"
    if isinstance(now, dict) and isinstance(value, dict) and not extra:
        return f"the keys {sorted(value)}"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    if _has_state(value) or isinstance(value, dict | np.random.Generator):
        return "a dict"
    return "an array" if hasattr(value, "get_state") or np.shape(value) else "a plain value"


def _is_of_torch(value: Any) -> bool:
    """Return whether this is a module or an optimiser, whose states share memory with it."""
    return hasattr(value, "named_parameters") or hasattr(value, "param_groups")


def _for_torch(saved: State) -> State:
    """A copy with numbers for the keys of an optimiser's parameters, which states can't have."""
    state: State = _copied(saved)
    if "param_groups" in state:
        state["state"] = {int(number): part for number, part in state["state"].items()}
    return state
