"""Names for the arrays of a data set's file, in `mine.columns.toml` beside `mine.csv` or the like.

observations = ["x", "v"]          # arrays side by side, or one array's name
actions = "u"
rewards = "r"
terminals = "done"
timeouts = "cut"                   # may be left out, like the following
next_observations = ["x_next", "v_next"]
episodes = "episode"               # another number begins another episode
steps = "t"                        # must rise within an episode

[observations]                     # in place of the line above: observations of several keys
position = ["x", "y"]
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from coach_rl.core.records import Array
from coach_rl.extensions.data.arrays import StoredArray

NAMES = (
    *("observations", "next_observations", "actions", "rewards"),
    *("terminals", "timeouts", "episodes", "steps"),
)
"""The arrays of a data set without a description of its spaces."""
WITH_PARTS = ("observations", "next_observations", "actions")
"""Those that may have parts by key."""
MOST_BYTES = 1 << 20
"""Size of a file of names that is read at most."""
_NUMBERED = re.compile(r"(.+)\.(\d+)")


def mapping_file(path: Path) -> Path:
    """The path of the names beside a data set's file."""
    return path.with_suffix(".columns.toml")


def named_arrays(path: Path, stored: Mapping[str, StoredArray]) -> dict[str, StoredArray]:
    """A file's arrays under the names that a data set has, such as `observations/position`.

    Args:
        path: The file.
        stored: Its arrays.

    Raises:
        ValueError: The names beside it can't be read, or name what is not there.
    """
    beside = mapping_file(path)
    if not beside.exists():
        return _by_own_names(stored)
    if beside.stat().st_size > MOST_BYTES:
        raise ValueError(f"{beside.name} has more than {MOST_BYTES:,} bytes")
    given = tomllib.loads(beside.read_text())
    found = {}
    for name, sources in _flat(given, beside.name):
        found[name] = _joined(name, sources, stored, beside.name)
    return found


def _flat(given: Mapping[str, Any], where: str) -> Iterator[tuple[str, str | list[str]]]:
    """Names of a data set's arrays, each with the array that it is made of, or the list of them."""
    for name, value in given.items():
        if name not in NAMES:
            raise ValueError(f"{where} names '{name}'; allowed: {', '.join(NAMES)}")
        parts = value.items() if isinstance(value, dict) and name in WITH_PARTS else [("", value)]
        for key, each in parts:
            sources = [each] if isinstance(each, str) else each
            is_list = isinstance(sources, list) and bool(sources)
            if not is_list or not all(isinstance(source, str) for source in sources):
                raise ValueError(
                    f"{where} has {value!r} under '{name}'; give an array's name, or a list of them"
                )
            yield f"{name}/{key}" if key else name, each


def _joined(
    name: str, sources: str | list[str], stored: Mapping[str, StoredArray], where: str
) -> StoredArray:
    """The array of a name as it is, or those of a list side by side along a last axis."""
    for source in [sources] if isinstance(sources, str) else sources:
        if source not in stored:
            raise ValueError(
                f"it has no '{source}', which {where} names for '{name}'; got "
                f"{', '.join(sorted(stored)[:20]) or 'nothing'}"
            )
    if isinstance(sources, str):
        return stored[sources]
    return side_by_side(name, [stored[source] for source in sources])


def side_by_side(name: str, arrays: list[StoredArray]) -> StoredArray:
    """Arrays [T] as one of [T, K]; ValueError where they are not equally long."""
    shapes = {each.shape for each in arrays}
    if len(shapes) > 1 or len(arrays[0].shape) != 1:
        raise ValueError(f"'{name}' is made of arrays of shapes {sorted(shapes)}, not of [T] each")
    dtype = np.result_type(*(each.dtype for each in arrays))

    def blocks() -> Iterator[Array]:
        rests = [np.zeros(0, each.dtype) for each in arrays]
        for parts in zip_longest(*(each.blocks() for each in arrays)):
            rests = [
                rest if part is None else np.concatenate([rest, part])
                for rest, part in zip(rests, parts, strict=True)
            ]
            count = min(map(len, rests))
            yield np.stack([rest[:count] for rest in rests], axis=1).astype(dtype)
            rests = [rest[count:] for rest in rests]

    return StoredArray((*arrays[0].shape, len(arrays)), dtype, blocks)


def _by_own_names(stored: Mapping[str, StoredArray]) -> dict[str, StoredArray]:
    """Arrays that have a data set's names; `observations.0`, `observations.1` are one."""
    found: dict[str, StoredArray] = {}
    numbered: dict[str, dict[int, StoredArray]] = {}
    for name, array in stored.items():
        if match := _NUMBERED.fullmatch(name):
            numbered.setdefault(match[1], {})[int(match[2])] = array
        else:
            found[name] = array
    for name, parts in numbered.items():
        if sorted(parts) != list(range(len(parts))):
            raise ValueError(f"'{name}' has the parts {sorted(parts)}, not 0 to {len(parts) - 1}")
        arrays = [parts[number] for number in range(len(parts))]
        found[name] = side_by_side(name, arrays)
    return {
        name: array
        for name, array in found.items()
        if name in NAMES or name.partition("/")[0] in WITH_PARTS
    }
