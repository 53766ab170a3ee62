"""State by name: a class lists what it remembers, and is saved and loaded by that list.

    @dataclass
    class Rows(Saved):
        SAVED = ("noise", "level")               # or {"generator": "_rng"} to name a key

        noise: RowNoise
        level: FloatArray

Values may be numbers, texts, arrays, tensors, random generators, objects that have a state, and
lists or dicts of these. What is None is left out. Arrays of the same shape are filled in place.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

import numpy as np

from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.core.state import State


class Saved:
    """An object whose state is the attributes that `SAVED` lists, those of its bases included."""

    SAVED: ClassVar[tuple[str, ...] | Mapping[str, str]] = ()

    def state_dict(self) -> State:
        """What `SAVED` lists; shares no memory with the object."""
        now = {key: getattr(self, name) for key, name in _saved_names(type(self))}
        return {key: _copied(value) for key, value in now.items() if value is not None}

    def load_state_dict(self, state: State) -> None:
        """Continue from a saved state."""
        for key, name in _saved_names(type(self)):
            if key not in state:
                continue
            now = getattr(self, name)
            if (loaded := _loaded(now, state[key])) is not now:
                setattr(self, name, loaded)
        self.note_loaded()

    def note_loaded(self) -> None:
        """Called after loading, for what follows from it."""


def _saved_names(cls: type) -> Iterator[tuple[str, str]]:
    for each in reversed(cls.__mro__):
        listed = vars(each).get("SAVED", ())
        names = (
            listed.items() if isinstance(listed, Mapping) else [(n.lstrip("_"), n) for n in listed]
        )
        yield from names


def _copied(value: Any) -> Any:
    if hasattr(value, "state_dict"):
        return value.state_dict()
    match value:
        case np.random.Generator():
            return generator_state(value)
        case np.ndarray():
            return value.copy()
        case dict():
            return {key: _copied(part) for key, part in value.items()}
        case list():
            return [_copied(part) for part in value]
    return value.clone() if hasattr(value, "clone") else value


def _loaded(now: Any, saved: Any) -> Any:
    if hasattr(now, "load_state_dict"):
        now.load_state_dict(saved)
    elif isinstance(now, np.random.Generator):
        load_generator_state(now, saved)
    elif isinstance(now, np.ndarray) and now.shape == np.shape(saved):
        now[...] = saved
    elif hasattr(now, "copy_"):
        now.copy_(saved)
    elif isinstance(now, dict) and now.keys() == saved.keys():
        return {key: _loaded(now[key], part) for key, part in saved.items()}
    elif isinstance(now, list) and now and not isinstance(now[0], int | float | str):
        return [_loaded(old, new) for old, new in zip(now, saved, strict=True)]
    else:
        return _copied(saved)
    return now
