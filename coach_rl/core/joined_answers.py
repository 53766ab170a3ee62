"""Putting together what environments answered for different rows."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from coach_rl.core.records import Array, EnvResponse, Fault


def joined(parts: Sequence[EnvResponse], *, faults: tuple[Fault, ...]) -> EnvResponse:
    """Answers of different rows, with the same keys, as one."""

    def whole(arrays: Iterable[Array]) -> Array:
        return np.concatenate(list(arrays))

    def by_key(dicts: Sequence[dict[str, Array]]) -> dict[str, Array]:
        return {key: whole(each[key] for each in dicts) for key in dicts[0]}

    return EnvResponse(
        rows=whole(part.rows for part in parts),
        observation=by_key([part.observation for part in parts]),
        first_observation=by_key([part.first_observation for part in parts]),
        reward=whole(part.reward for part in parts),
        terminated=whole(part.terminated for part in parts),
        truncated=whole(part.truncated for part in parts),
        end=whole(part.end for part in parts),
        duration=whole(part.duration for part in parts),
        info=by_key([part.info for part in parts]),
        faults=faults,
    )


def joined_blocks(parts: Sequence[EnvResponse]) -> EnvResponse:
    """Answers of blocks of rows, which may have different infos, as one; with all faults."""
    infos = infos_with_same_keys([part.info for part in parts], [len(part) for part in parts])
    faults = tuple(fault for part in parts for fault in part.faults)
    alike = [replace(part, info=info) for part, info in zip(parts, infos, strict=True)]
    return joined(alike, faults=faults)


def infos_with_same_keys(
    infos: Sequence[Mapping[str, Array]], sizes: Sequence[int]
) -> list[dict[str, Array]]:
    """Infos of different rows with the same keys, as an environment of all rows reports them.

    A key that only some report is zeros for the others, and `_<key>` says whose it is.

    Args:
        infos: Of each part, [R, ...] each.
        sizes: R of each part.
    """
    known = {key: values for info in infos for key, values in info.items()}
    masks = {f"_{key}" for key in known} & known.keys()
    partial = {
        key
        for key in known.keys() - masks
        if f"_{key}" in masks or any(key not in info for info in infos)
    }
    completed = []
    for info, size in zip(infos, sizes, strict=True):
        own: dict[str, Array] = {}
        for key, like in known.items():
            if key in masks:
                continue
            blank = np.zeros((size, *like.shape[1:]), like.dtype)
            own[key] = info.get(key, blank)
            if key in partial:
                own[f"_{key}"] = info.get(f"_{key}", np.full(size, key in info))
        completed.append(own)
    return completed
