"""Facts about a data set as lines of text, and what is wrong with it."""

from collections.abc import Iterator

import numpy as np
from gymnasium import spaces

from coach_rl.core.records import Array, FloatArray
from coach_rl.core.shown_text import printable, readable
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.extensions.data.column_cache import blocks_of
from coach_rl.extensions.data.files import OpenedFile, file_of, first_outside
from coach_rl.extensions.data.minari_data import minari_infos
from coach_rl.extensions.data.readers import READERS
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.memories.batches import (
    ACTION_PARTS,
    ACTIONS,
    DURATIONS,
    OBSERVATIONS,
    REWARDS,
    TERMINATED,
    TRUNCATED,
)

_QUANTILES = {"min": 0.0, "5 %": 0.05, "25 %": 0.25, "median": 0.5, "75 %": 0.75, "95 %": 0.95}
_BINS = 10
_WIDTH = 40
"""Characters of the longest bar of a histogram."""


def returns_of(recorded: Recorded) -> FloatArray:
    """The undiscounted return of each episode, float64 [E]."""
    if not len(recorded):
        return np.zeros(0)
    rewards = recorded.columns[REWARDS].astype(np.float64)
    sums: FloatArray = np.add.reduceat(rewards, recorded.begins)
    return sums


def facts(source: str, opened: OpenedFile) -> Iterator[str]:
    """Lines that describe a data set."""
    recorded = opened.recorded
    columns = recorded.columns
    size = sum(each.nbytes for each in columns.values())
    folder = recorded.folder
    where = "in memory" if folder is None else f"mapped from {printable(str(folder))}"
    yield f"data set:     {printable(source)}, {readable(size)} as columns, {where}"
    if opened.spaces is None:
        yield "spaces:       not described; columns are"
        for path, column in sorted(columns.items()):
            yield f"  {printable(path):<28} {column.dtype} {list(column.shape[1:])}"
    else:
        for key, space in opened.spaces.observation.items():
            yield f"observation:  {printable(str(key))}: {space}"
        yield f"action:       {opened.spaces.action}"
    ends = int(columns[TERMINATED].sum()) if columns else 0
    count = len(recorded.begins)
    yield f"episodes:     {count:,} of {len(recorded):,} transitions; {ends:,} terminated"
    yield f"infos:        {', '.join(_infos(source, recorded)) or 'none'}"
    if not count:
        return
    for name, values in (("returns", returns_of(recorded)), ("lengths", recorded.lengths)):
        yield from _distribution(name, values.astype(np.float64))


def _infos(source: str, recorded: Recorded) -> list[str]:
    """The names of what is kept beside transitions."""
    if file_of(source).suffix not in READERS:
        return [printable(name) for name in minari_infos(source)]
    durations = recorded.columns.get(DURATIONS)
    own = ["duration"] if durations is not None and (durations != 1).any() else []
    return own + [printable(name) for name in sorted(recorded.infos)]


def _distribution(name: str, values: FloatArray) -> Iterator[str]:
    """Mean, quantiles and a histogram of values [E]; those that are not finite are counted."""
    is_finite = np.isfinite(values)
    if not is_finite.all():
        yield f"{name + ':':<13} {(~is_finite).sum():,} are not finite"
        values = values[is_finite]
    if not len(values):
        return
    shown = [f"{label} {np.quantile(values, at):.4g}" for label, at in _QUANTILES.items()]
    shown += [f"max {values.max():.4g}"]
    yield f"{name + ':':<13} mean {values.mean():.4g}; {', '.join(shown)}"
    counts, edges = np.histogram(values, bins=_BINS)
    for number, among in enumerate(counts):
        bar = "#" * round(_WIDTH * among / counts.max())
        yield f"  {edges[number]:>10.4g} to {edges[number + 1]:<10.4g} {among:>8,} {bar}"


def problems(opened: OpenedFile, wanted: EnvironmentSpaces | None = None) -> Iterator[str]:
    """The problems of a data set, a line each.

    Args:
        opened: The data set.
        wanted: Spaces whose bounds count beside its own; None: its own alone.
    """
    recorded = opened.recorded
    if not len(recorded):
        yield "it has no transitions"
        return
    for path, column in sorted(recorded.columns.items()):
        yield from _problems_of_numbers(path, column)
    for known in (opened.spaces, wanted):
        if known is not None:
            yield from _outside(recorded, known)
    yield from _problems_of_time(recorded)


def _problems_of_numbers(path: str, column: Array) -> Iterator[str]:
    if column.dtype.kind != "f":
        return
    count = sum(int((~np.isfinite(block)).sum()) for block in blocks_of(column))
    if count:
        yield f"{printable(path)} has {count:,} numbers that are not finite"


def _outside(recorded: Recorded, known: EnvironmentSpaces) -> Iterator[str]:
    """Observations and actions outside their spaces."""
    parts: dict[str, tuple[str, Space]] = {
        f"{OBSERVATIONS}{key}": (f"observation '{key}'", space)
        for key, space in known.observation.items()
    }
    if isinstance(known.action, spaces.Dict):
        for key, space in known.action.items():
            parts[f"{ACTION_PARTS}{key}"] = (f"action '{key}'", space)
    else:
        parts[ACTIONS] = ("action", known.action)
    for path, (what, space) in parts.items():
        column = recorded.columns.get(path)
        if column is None or column.shape[1:] != space.shape:
            continue  # of which the comparison of spaces speaks
        first = first_outside(column, space)
        if first is not None:
            yield (f"{printable(what)} {column[first]} of transition {first:,} is outside {space}")


def _problems_of_time(recorded: Recorded) -> Iterator[str]:
    """Ends within episodes, and observations that do not follow on each other."""
    columns = recorded.columns
    both = np.flatnonzero(columns[TERMINATED] & columns[TRUNCATED])
    if len(both):
        yield f"transition {both[0]:,} has both terminated and been truncated ({len(both):,} have)"
    if (columns[DURATIONS] < 1).any():
        yield f"{DURATIONS} has values below 1"
    for key, places in recorded.breaks().items():
        if len(places):
            yield (
                f"order of time: observation '{printable(str(key))}' behind transition "
                f"{places[0]:,} is not that of transition {places[0] + 1:,}, in one episode "
                f"({len(places):,} are not)"
            )
