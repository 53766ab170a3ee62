"""Gymnasium's info dicts as arrays."""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from coach_rl.core.records import Array

Info = dict[str, Any]
"""One row's info: numbers, booleans, strings and arrays by flat name."""


def flat_info(info: Mapping[str, Any], prefix: str = "") -> Info:
    """The parts of an info dict that have an array form, nested names joined by slashes.

    Numbers, booleans, strings and numeric arrays are kept; any other object is left out.
    """
    flat: Info = {}
    for key, value in info.items():
        name = f"{prefix}{key}"
        if isinstance(value, Mapping):
            flat |= flat_info(value, f"{name}/")
        elif isinstance(value, (bool, int, float, str, np.generic)) or (
            isinstance(value, np.ndarray) and not value.dtype.hasobject
        ):
            flat[name] = value
    return flat


def batched_infos(infos: list[Info]) -> dict[str, Array]:
    """The rows' infos as arrays, [R, ...] each.

    As in Gymnasium's vector environments, a name that only some rows have gets zeros for the others
    and a boolean array `_<name>` that says which rows have it. A name whose shape differs between
    the rows has no array form and is left out.
    """
    if not any(infos):
        return {}
    batch: dict[str, Array] = {}
    for name in dict.fromkeys(_names(infos)):
        values = [np.asarray(info[name]) if name in info else None for info in infos]
        known = [value for value in values if value is not None]
        if len({value.shape for value in known}) > 1:
            continue
        if len(known) == len(values):
            batch[name] = np.stack(known)
            continue
        blank = np.zeros_like(known[0])
        batch[name] = np.stack([blank if value is None else value for value in values])
        batch[f"_{name}"] = np.array([value is not None for value in values])
    return batch


def _names(infos: list[Info]) -> Iterable[str]:
    for info in infos:
        yield from info
