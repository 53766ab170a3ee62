"""Infos of environments, those of single agents among them, and answers that are joined."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeVar

import numpy as np

from coach_rl.core.errors import SpaceError, warn
from coach_rl.core.records import Array, EnvResponse, Fault, IntArray, Outcome

AGENTS = "agents"
"""The info under which each agent has its place."""


def joined(parts: Sequence[EnvResponse], *, faults: tuple[Fault, ...]) -> EnvResponse:
    """Answers of different rows, which may have different infos, as one; empty if all are."""
    parts = [part for part in parts if len(part)] or parts[:1]

    def whole(arrays: Iterable[Array]) -> Array:
        return np.concatenate(list(arrays))

    def by_key(dicts: Sequence[dict[str, Array]]) -> dict[str, Array]:
        return {key: whole(each[key] for each in dicts) for key in dicts[0]}

    infos = infos_with_same_keys([part.info for part in parts], [len(part) for part in parts])
    return EnvResponse(
        rows=whole(part.rows for part in parts),
        observation=by_key([part.observation for part in parts]),
        first_observation=by_key([part.first_observation for part in parts]),
        reward=whole(part.reward for part in parts),
        terminated=whole(part.terminated for part in parts),
        truncated=whole(part.truncated for part in parts),
        end=whole(part.end for part in parts),
        duration=whole(part.duration for part in parts),
        info=by_key(infos),
        faults=faults,
    )


def infos_with_same_keys(
    infos: Sequence[Mapping[str, Array]], sizes: Sequence[int]
) -> list[dict[str, Array]]:
    """Infos of different rows with the same keys, as an environment of all rows reports them.

    A key that only some report is zeros for the others; the mask `_<key>` marks the rows that do.

    Args:
        infos: Of each part, [R, ...] each.
        sizes: R of each part.
    """
    known = {key: values for info in infos for key, values in info.items()}
    marks = {f"_{key}" for key in known} & known.keys()
    partial = {
        key
        for key in known.keys() - marks
        if f"_{key}" in marks or any(key not in info for info in infos)
    }
    completed = []
    for info, size in zip(infos, sizes, strict=True):
        own: dict[str, Array] = {}
        for key, like in known.items():
            if key in marks:
                continue
            blank = np.zeros((size, *like.shape[1:]), like.dtype)
            own[key] = info.get(key, blank)
            if key in partial:
                own[f"_{key}"] = info.get(f"_{key}", np.full(size, key in info))
        completed.append(own)
    return completed


REWARD = "reward"


TERMINATED = "terminated"


TRUNCATED = "truncated"


def agent_info(name: str, what: str) -> str:
    """The name of an info array about one agent, e.g. `agents/left/reward`."""
    return f"{AGENTS}/{name}/{what}"


def is_agent_reward(key: str) -> bool:
    """Return whether an info array is the own reward of an agent."""
    return key.startswith(f"{AGENTS}/") and key.endswith(f"/{REWARD}")


def is_agent_end(key: str) -> bool:
    """Return whether an info array marks the ends of an agent's own episodes."""
    return key.startswith(f"{AGENTS}/") and key.endswith((f"/{TERMINATED}", f"/{TRUNCATED}"))


Over = Literal["sum", "maximum", "last"]
"""Rule for an info of a decision of several steps: the sum or the maximum of its steps that
report it, or the last step's."""


@dataclass(frozen=True, kw_only=True)
class Sums:
    """Rules by which results of the level below become those of a decision."""

    discount: float = 1.0
    """Discount of rewards per simulator step."""
    infos: Mapping[str, Over] = field(default_factory=dict)
    """Rules for infos, by name; sums of them are not discounted."""


PLAIN_SUMS = Sums()


def add_infos(
    totals: dict[str, Array],
    info: Mapping[str, Array],
    over: Mapping[str, Over],
    *,
    rows: IntArray,
    places: Array | slice,
    count: int,
) -> None:
    """Add infos to those of open decisions.

    Args:
        totals: [N, ...] each: sums and maxima by name, and behind `_` which rows have one.
        info: Of the next step, [R, ...] each.
        over: Names of sums and maxima; others are ignored.
        rows: Of the decisions, [D].
        places: Their places in the infos, [D].
        count: N.
    """
    for name in [each for each, how in over.items() if how != "last" and each in info]:
        known = info.get(f"_{name}", np.ones(len(info[name]), np.bool_))[places]
        values = info[name][places][known]
        where = rows[known]
        if values.dtype.kind not in "biuf":
            raise SpaceError(f"decision_infos names the info '{name}', which is no number; drop it")
        kind = np.dtype(np.float64) if over[name] == "sum" else values.dtype
        total = totals.setdefault(name, np.zeros((count, *values.shape[1:]), kind))
        has = totals.setdefault(f"_{name}", np.zeros(count, np.bool_))
        before = total[where]
        fresh = ~has[where]
        if over[name] == "sum":
            total[where] = before + values
        else:
            before[fresh] = values[fresh]
            total[where] = np.maximum(before, values)
        has[where] = True


Answered = TypeVar("Answered", "EnvResponse", "Outcome")


@dataclass(frozen=True)
class InfoWatch:
    """Warns of an agent, or a reward, that learns from a number of a decision's last step alone."""

    over: Mapping[str, Over]
    """Rules for infos, by name."""
    owner: str
    """Name of the reader, for the message."""
    _warned: set[str] = field(default_factory=set)

    def of(self, record: Answered) -> Answered:
        """The record; where a decision took several steps, reading such an info warns once."""
        if not record.info or not (record.duration > 1).any():
            return record
        return replace(record, info=_ReadInfos(record.info, self._note))

    def _note(self, name: str, values: Array) -> None:
        known = name in self.over or name in self._warned or name.startswith("_")
        if known or is_agent_reward(name) or is_agent_end(name) or values.dtype.kind not in "biuf":
            return
        self._warned.add(name)
        warn(
            f"{self.owner} reads the info '{name}' of decisions of several steps, which is that of "
            f"the last one; choose by GraphParameters(decision_infos={{'{name}': 'sum'}}), "
            "'maximum' or 'last'",
        )


class _ReadInfos(dict[str, Array]):
    """Infos, and what is called with those that are read one by one."""

    def __init__(self, info: Mapping[str, Array], note: Callable[[str, Array], None]) -> None:
        super().__init__(info)
        self._note = note

    def __getitem__(self, name: str) -> Array:
        self._note(name, values := super().__getitem__(name))
        return values

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default  # noqa: SIM401 - this is `get`


def agent_rewards(info: Mapping[str, Array]) -> dict[str, Array]:
    """Every agent's own reward, [R] each, by the agent's name; empty where there is but one."""
    before, after = f"{AGENTS}/", f"/{REWARD}"
    found: dict[str, Array] = {}
    for name, values in info.items():
        if is_agent_reward(name):
            found[name.removeprefix(before).removesuffix(after)] = values
    return found
