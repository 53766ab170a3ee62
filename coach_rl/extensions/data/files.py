"""Data sets in one file: npz, of our own form or D4RL's, and HDF5 in D4RL's.

A file of our own form has the columns of a memory by their paths, such as `observations/position`,
`actions`, `rewards`, `terminated`, `truncated`, and `spaces`, JSON in bytes. Observations have one
more entry an episode, for its end, unless there are `next_observations/position`. D4RL's has
`observations`, `actions`, `rewards`, `terminals`, and `timeouts` where episodes are cut off;
`next_observations` may be left out, and the last transition of an episode that was cut off is then,
too, as nothing is known of what it led to.

Nothing in a file is unpickled.
"""

import csv
import json
import shutil
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
from gymnasium import spaces

from coach_rl.configuration.parameters_json import spaces_from_json, spaces_to_json
from coach_rl.core.errors import (
    CheckpointError,
    ConfigurationError,
    SpaceError,
    in_one_line,
    warn,
)
from coach_rl.core.records import Array, BoolArray, IntArray
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.extensions.data.arrays import StoredArray
from coach_rl.extensions.data.column_cache import (
    IN_MEMORY,
    ColumnCache,
    ColumnPlace,
    InMemory,
    blocks_of,
    check_memory,
    checksum,
)
from coach_rl.extensions.data.mapping import mapping_file, named_arrays
from coach_rl.extensions.data.minari_data import (
    PLAIN_KEY,
    check_spaces,
    located,
    minari_spaces,
    minari_steps,
    read_minari,
)
from coach_rl.extensions.data.readers import READERS
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.memories.batches import (
    ACTION_PARTS,
    ACTIONS,
    DURATIONS,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    REWARDS,
    TERMINATED,
    TRUNCATED,
    under,
)

SPACES = "spaces"
"""Name of the JSON that describes the spaces of a file of our own form."""
SAMPLES = Path(__file__).parent / "samples"
"""Folder of the samples that come with coach_rl, `data:NAME`."""
SAMPLE = "data:"
"""Beginning of the name of a sample."""
_OF_D4RL = ("observations", "actions", "rewards", "terminals")


_UNREADABLE = (
    CheckpointError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,  # a zip's compression
    OSError,
    RuntimeError,  # an encrypted zip
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
    csv.Error,
)
"""Errors of files that are no data sets, or damaged."""


@dataclass(frozen=True)
class OpenedFile:
    """The content of a file, as far as it is known without knowing a task."""

    spaces: EnvironmentSpaces | None
    """The spaces that it describes; None: it describes none."""
    recorded: Recorded
    """Its transitions."""


def read_data(source: str, *, observation_space: spaces.Dict, action_space: Space) -> Recorded:
    """The transitions of a data set, for an agent's level.

    Args:
        source: A Minari id, the path of a Minari data set's folder, of a file that ends with .npz,
            .h5, .hdf5, .csv or .parquet, or `data:NAME` for one of the samples.
        observation_space: What the level shows.
        action_space: Where the environment takes actions.

    Raises:
        ConfigurationError: There is no such data set, or it cannot be read.
        SpaceError: It has other spaces.
    """
    read = READERS.get(file_of(source).suffix)
    if read is None:
        return _from_minari(source, observation_space, action_space)
    opened = open_file(source)
    require_spaces(source, opened, observation_space, action_space)
    require_finite(source, opened.recorded)
    return _in_order(source, opened.recorded)


def require_spaces(
    source: str, opened: OpenedFile, observation_space: spaces.Dict, action_space: Space
) -> None:
    """Raise `SpaceError` unless a data set can be one of a task with these spaces."""
    if opened.spaces is None:
        _check_numbers(source, opened.recorded, observation_space, action_space)
    else:
        has = opened.spaces.observation, opened.spaces.action
        check_spaces(source, has, observation_space, action_space)
        _check_actions(source, opened.recorded, action_space)


def open_data(source: str) -> OpenedFile:
    """The content of a data set of any kind, for no task in particular.

    Raises:
        ConfigurationError: There is no such data set, or it cannot be read.
    """
    if file_of(source).suffix in READERS:
        return open_file(source)
    observed, acted = minari_spaces(source)
    known = EnvironmentSpaces(observation=observed, action=acted)
    return OpenedFile(known, _from_minari(source, observed, acted))


def _from_minari(source: str, observation_space: spaces.Dict, action_space: Space) -> Recorded:
    """A Minari data set's transitions, in memory, or mapped where they are large."""

    def episodes() -> Iterator[dict[str, Array]]:
        return read_minari(source, observation_space=observation_space, action_space=action_space)

    count = minari_steps(source)
    first = next(episodes(), None)
    if first is None:
        return Recorded.of(())
    needed = count * sum(each[:1].nbytes for each in first.values())
    if needed <= IN_MEMORY:
        return Recorded.of(episodes())
    path = path_of(source)
    cache = ColumnCache(checksum(path))
    if known := cache.load():
        return _recorded(known[0], cache.folder)
    made = cache.begin(path, needed)
    try:
        columns = {}
        for name, column in first.items():
            blocks = (episode[name] for episode in episodes())
            columns[name] = made.written((count, *column.shape[1:]), column.dtype, blocks)
        return _recorded(cache.finish(made, columns, None), cache.folder)
    finally:
        shutil.rmtree(made.folder, ignore_errors=True)


def open_file(source: str) -> OpenedFile:
    """The content of a file; ConfigurationError where it cannot be read."""
    path = file_of(source)
    if not path.is_file():
        raise ConfigurationError(
            f"there is no data set '{source}' in {path}; give the path of a file that is there"
        )
    try:
        return _read(path)
    except _UNREADABLE as error:
        raise ConfigurationError(
            f"the data set '{source}' cannot be read: {in_one_line(error)}"
        ) from error


def _read(path: Path) -> OpenedFile:
    """A file's content, in memory, or mapped where it is large."""
    with ExitStack() as opened:
        stored = READERS[path.suffix](path, opened)
        named = stored if SPACES in stored else named_arrays(path, stored)
        needed = sum(each.nbytes for each in named.values())
        if needed <= IN_MEMORY:
            check_memory(path, needed)
            memory = InMemory()
            arrays = {name: _array_of(each, memory) for name, each in named.items()}
            return _opened(arrays, memory)
        cache = ColumnCache(content_key(path))
        if known := cache.load():
            columns, about = known
            return OpenedFile(_spaces_of(about), _recorded(columns, cache.folder))
        made = cache.begin(path, 3 * needed)  # as read, and observations with what follows on each
        try:
            arrays = {name: _array_of(each, made) for name, each in named.items()}
            found = _opened(arrays, made)
            about = None if found.spaces is None else spaces_to_json(found.spaces)
            columns = cache.finish(made, found.recorded.columns, about)
        finally:
            shutil.rmtree(made.folder, ignore_errors=True)
        return OpenedFile(found.spaces, _recorded(columns, cache.folder))


def _array_of(stored: StoredArray, place: ColumnPlace) -> Array:
    array: Array = place.written(stored.shape or (1,), stored.dtype, stored.blocks())
    return array


def content_key(path: Path) -> str:
    """The checksum of a data set, and of the names of its columns where they are beside it."""
    beside = mapping_file(path)
    if not beside.exists():
        return checksum(path)
    return sha256(f"{checksum(path)} {checksum(beside)}".encode()).hexdigest()


def _spaces_of(document: Any) -> EnvironmentSpaces | None:
    return None if document is None else spaces_from_json(document, source=f"'{SPACES}'")


def _recorded(columns: Mapping[str, Array], folder: Path | None = None) -> Recorded:
    """Columns [T, ...] with the places of episodes, which end where one is over or cut off."""
    ends: BoolArray = columns[TERMINATED] | columns[TRUNCATED]
    begins: IntArray = np.concatenate([[0], np.flatnonzero(ends[:-1]) + 1])
    return Recorded(columns, begins, folder)


def write_file(recorded: Recorded, target: str | Path, known: EnvironmentSpaces) -> Path:
    """Write transitions as a compressed npz file of our own form, under a name that is free.

    Args:
        recorded: The transitions.
        target: The file's path, which ends with .npz.
        known: Their spaces.

    Raises:
        ConfigurationError: There is such a file, or nothing to write.
    """
    path = Path(target).expanduser()
    if path.suffix != ".npz":
        raise ConfigurationError(f"a data set's file must end with .npz, got '{path}'")
    if path.exists():
        raise ConfigurationError(f"the data set '{path}' exists already; write another file")
    if not len(recorded):
        raise ConfigurationError(f"there are no transitions to write into data set '{path}'")
    try:
        _check_lengths(recorded.columns)
    except ValueError as error:
        raise ConfigurationError(f"the data set '{path}' cannot be written: {error}") from error
    columns = {name.removeprefix("/"): column for name, column in _merged(recorded).items()}
    document = json.dumps(spaces_to_json(known), sort_keys=True).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".npz.part")
    try:
        with partial.open("wb") as file:
            np.savez_compressed(
                file, allow_pickle=False, **columns, **{SPACES: np.frombuffer(document, np.uint8)}
            )
        partial.replace(path)
    except OSError:
        partial.unlink(missing_ok=True)
        raise
    return path


def path_of(source: str) -> Path:
    """The absolute path of a data set's file, or of a Minari data set's folder.

    Raises:
        ConfigurationError: There is no such sample, or no such Minari id.
    """
    path = file_of(source)
    return path.absolute() if path.suffix in READERS else located(source)[1]


def file_of(source: str) -> Path:
    """The path of a sample, or the one that is given."""
    if source.startswith(SAMPLE):
        path = SAMPLES / f"{source.removeprefix(SAMPLE)}.npz"
        known = sorted(each.stem for each in SAMPLES.glob("*.npz"))
        if path.parent != SAMPLES or path.stem not in known:
            raise ConfigurationError(
                f"there is no sample '{source}'; allowed: "
                f"{', '.join(f'{SAMPLE}{name}' for name in known) or 'none in this installation'}"
            )
        return path
    return Path(source).expanduser()


def _opened(arrays: dict[str, Array], place: ColumnPlace) -> OpenedFile:
    """A file's arrays as transitions; ValueError names what is wrong with them."""
    known = None
    if SPACES in arrays:
        document = json.loads(bytes(arrays.pop(SPACES).astype(np.uint8)))
        known = _spaces_of(document)
    columns = (
        {f"/{name}": values for name, values in arrays.items()}
        if known is not None
        else _from_d4rl(arrays, place)
    )
    columns.setdefault(DURATIONS, np.ones(len(columns[REWARDS]), np.int64))
    for path in (TERMINATED, TRUNCATED):
        if columns[path].dtype != np.bool_ or columns[path].ndim != 1:
            raise ValueError(f"'{path}' holds {columns[path].dtype}, not one bool each")
    _check_lengths({path: each for path, each in columns.items() if "observations" not in path})
    columns[TRUNCATED] = columns[TRUNCATED].copy()
    columns[TRUNCATED][-1:] |= ~columns[TERMINATED][-1:]
    columns = _split(columns, columns[TERMINATED] | columns[TRUNCATED], place)
    _check_columns(columns)
    if known is not None:
        _check_shapes(columns, known)
    return OpenedFile(known, _recorded(columns))


def _merged(recorded: Recorded) -> dict[str, Array]:
    """Columns in which each observation is kept once, where decisions follow on each other."""
    columns = dict(recorded.columns)
    ends = np.zeros(len(recorded), np.bool_)
    ends[recorded.begins + recorded.lengths - 1] = True
    for key, seen in under(OBSERVATIONS, recorded.columns).items():
        following = columns[f"{NEXT_OBSERVATIONS}{key}"]
        if np.array_equal(following[:-1][~ends[:-1]], seen[1:][~ends[:-1]]):
            del columns[f"{NEXT_OBSERVATIONS}{key}"]
            behind = np.flatnonzero(ends) + 1
            columns[f"{OBSERVATIONS}{key}"] = np.insert(seen, behind, following[ends], axis=0)
    return columns


def _split(columns: dict[str, Array], ends: BoolArray, place: ColumnPlace) -> dict[str, Array]:
    """Columns with next observations, of what `_merged` returns; ends [T] are those of episodes."""
    episode: IntArray = np.cumsum(ends) - ends  # the number of each transition's episode
    places = np.arange(len(ends)) + episode
    for key, seen in under(OBSERVATIONS, columns).items():
        if f"{NEXT_OBSERVATIONS}{key}" in columns:
            continue
        if len(seen) != len(ends) + np.count_nonzero(ends):
            raise ValueError(
                f"'{OBSERVATIONS}{key}' has {len(seen):,} entries for {len(ends):,} transitions of "
                f"{np.count_nonzero(ends):,} episodes, which need one more each"
            )
        columns[f"{OBSERVATIONS}{key}"] = place.taken(seen, places)
        columns[f"{NEXT_OBSERVATIONS}{key}"] = place.taken(seen, places + 1)
    return columns


def _from_d4rl(arrays: dict[str, Array], place: ColumnPlace) -> dict[str, Array]:
    """The columns of D4RL's arrays, or of those that are named like them."""
    observed = _parts_of("observations", arrays)
    acted = _parts_of("actions", arrays)
    missing = [name for name in ("rewards", "terminals") if name not in arrays]
    missing += [
        name for name, parts in (("observations", observed), ("actions", acted)) if not parts
    ]
    if missing:
        raise ValueError(
            f"it has no '{missing[0]}'; expected {', '.join(_OF_D4RL)}, or a file that coach_rl "
            f"wrote; got {', '.join(sorted(arrays)[:20]) or 'nothing'}"
        )
    lengths = {name: len(each) if each.ndim else 0 for name, each in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"its arrays have different lengths: {lengths}")
    terminated = _flags("terminals", arrays["terminals"])
    timeouts = arrays.get("timeouts", np.zeros_like(terminated))
    truncated = _flags("timeouts", timeouts) & ~terminated
    truncated[:-1] |= _changes(arrays) & ~terminated[:-1]
    _check_order(arrays, terminated | truncated)
    following = _parts_of("next_observations", arrays)
    kept = np.ones(len(terminated), np.bool_)
    if not following:
        kept = ~truncated
        kept[-1:] &= terminated[-1:]
        # The transition before one that is left out is the episode's last.
        truncated = np.concatenate([~kept[1:], [False]]) & kept & ~terminated
    elif following.keys() != observed.keys():
        raise ValueError(
            f"its next observations are {sorted(following)}, its observations {sorted(observed)}"
        )
    places = np.flatnonzero(kept)
    columns = {
        REWARDS: arrays["rewards"].reshape(len(terminated))[kept],
        TERMINATED: terminated[kept],
        TRUNCATED: truncated[kept],
    }
    for key, values in observed.items():
        columns[f"{OBSERVATIONS}{key}"] = place.taken(values, places)
        # Without next observations each is kept only where the one behind it follows.
        if following:
            columns[f"{NEXT_OBSERVATIONS}{key}"] = place.taken(following[key], places)
            continue
        # A terminal one's is not in the file, and no target uses it.
        behind = np.where(columns[TERMINATED], places, places + 1)
        columns[f"{NEXT_OBSERVATIONS}{key}"] = place.taken(values, behind)
    for key, values in acted.items():
        path = ACTIONS if key == PLAIN_KEY else f"{ACTION_PARTS}{key}"
        columns[path] = place.taken(values, places)
    return columns


def _parts_of(name: str, arrays: Mapping[str, Array]) -> dict[str, Array]:
    """The arrays of a name by key: of the name alone under the key of plain observations."""
    parts = {PLAIN_KEY: arrays[name]} if name in arrays else {}
    return parts | under(f"{name}/", arrays)


def _flags(name: str, values: Array) -> BoolArray:
    """An array [T] of false and true, which may be 0 and 1."""
    if values.dtype.kind not in "biuf":
        raise ValueError(f"'{name}' holds {values.dtype}, not numbers")
    flat = values.reshape(len(values))
    if not np.isin(flat, (0, 1)).all():
        raise ValueError(f"'{name}' holds others than 0 and 1")
    return flat.astype(np.bool_)


def _changes(arrays: Mapping[str, Array]) -> BoolArray:
    """True where the number of the episode changes, bool [T - 1]; all false without numbers."""
    numbers = arrays.get("episodes")
    if numbers is None:
        return np.zeros(max(0, len(arrays["rewards"]) - 1), np.bool_)
    changes: BoolArray = numbers[1:] != numbers[:-1]
    return changes.reshape(len(numbers) - 1)


def _check_order(arrays: Mapping[str, Array], ends: BoolArray) -> None:
    """Raise `ValueError` unless the numbers of steps rise within each episode."""
    steps = arrays.get("steps")
    if steps is None:
        return
    flat = steps.reshape(len(ends))
    wrong = np.flatnonzero(~(flat[1:] > flat[:-1]) & ~ends[:-1])
    if len(wrong):
        at = int(wrong[0])
        raise ValueError(
            f"its transition {at + 1:,} has step {flat[at + 1]} behind step {flat[at]} in one "
            "episode; order them by time, or mark where episodes end"
        )


def _check_lengths(columns: Mapping[str, Array]) -> None:
    """Raise `ValueError` unless columns are of equal length."""
    lengths = {path: len(column) if column.ndim else 0 for path, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"its columns have different lengths: {lengths}")


def _check_columns(columns: Mapping[str, Array]) -> None:
    """Raise `ValueError` unless columns are those of transitions, and of equal length."""
    observed = under(OBSERVATIONS, columns)
    needed = [REWARDS, TERMINATED, TRUNCATED, *(f"{NEXT_OBSERVATIONS}{key}" for key in observed)]
    missing = [path for path in needed if path not in columns]
    if missing or not observed or not (ACTIONS in columns or under(ACTION_PARTS, columns)):
        raise ValueError(f"it has no '{(missing or ['observations and actions'])[0]}'")
    _check_lengths(columns)
    for path, column in columns.items():
        if column.dtype.kind not in "biuf":
            raise ValueError(f"'{path}' holds {column.dtype}, not numbers")
    for path in (REWARDS, TERMINATED, TRUNCATED, DURATIONS):
        if columns[path].ndim != 1:
            raise ValueError(f"'{path}' has shape {columns[path].shape}, not one number each")


def _check_shapes(columns: Mapping[str, Array], known: EnvironmentSpaces) -> None:
    """Raise `ValueError` unless columns have the shapes of the spaces that a file describes."""
    for path, space in columns_of(known).items():
        column = columns.get(path)
        if column is None or column.shape[1:] != space.shape:
            shape = "none" if column is None else f"shape {column.shape[1:]} each"
            raise ValueError(f"'{path}' has {shape}, and its spaces describe {space}")


def columns_of(known: EnvironmentSpaces) -> dict[str, Space]:
    """The spaces of observations and actions by the paths of their columns."""
    acted = known.action
    parts = acted.spaces if isinstance(acted, spaces.Dict) else None
    return {
        **{f"{OBSERVATIONS}{key}": space for key, space in known.observation.items()},
        **{f"{NEXT_OBSERVATIONS}{key}": space for key, space in known.observation.items()},
        **({ACTIONS: acted} if parts is None else {f"{ACTION_PARTS}{k}": parts[k] for k in parts}),
    }


def require_finite(source: str, recorded: Recorded) -> None:
    """Raise `ConfigurationError` for numbers that nothing can be learned from."""
    for path, column in recorded.columns.items():
        if column.dtype.kind != "f":
            continue
        begin = 0
        for block in blocks_of(column):
            is_finite = np.isfinite(block).reshape(len(block), -1).all(axis=1)
            if not is_finite.all():
                raise ConfigurationError(
                    f"the data set '{source}' cannot be learned from: '{path}' holds a number that "
                    f"is not finite in transition {begin + int(is_finite.argmin()):,}; leave such "
                    "episodes out (`coach data check` counts them)"
                )
            begin += len(block)


def _in_order(source: str, recorded: Recorded) -> Recorded:
    """The transitions, in episodes that end where the next observation is not that behind it.

    None of them is terminal and cut off at once.
    """
    breaks = np.zeros(len(recorded), np.bool_)
    for places in recorded.breaks().values():
        breaks[places] = True
    if breaks.any():
        warn(
            f"in {breaks.sum():,} of {len(recorded):,} transitions of data set '{source}' the next "
            "observation is not that of the transition behind it; an episode is cut off there"
        )
    truncated = (recorded.columns[TRUNCATED] | breaks) & ~recorded.columns[TERMINATED]
    return _recorded({**recorded.columns, TRUNCATED: truncated}, recorded.folder)


def _check_actions(source: str, recorded: Recorded, action_space: Space) -> None:
    """Raise `SpaceError` for an action outside its space."""
    acted = EnvironmentSpaces(observation=spaces.Dict(), action=action_space)
    for path, space in columns_of(acted).items():
        column = recorded.columns[path]
        at = first_outside(column, space)
        if at is not None:
            raise SpaceError(
                f"data set '{source}' has the action {column[at]} in transition {at:,}, outside "
                f"{space}; use a data set of the same task"
            )


def first_outside(column: Array, space: Space) -> int | None:
    """The place of a column's first entry outside a space; None: there is none."""
    bounds = bounds_of(space)
    if bounds is None:
        return None
    low, high = bounds
    begin = 0
    for block in blocks_of(column):
        if isinstance(space, spaces.Box):  # a bound may be the nearest number of fewer digits
            block = block.astype(space.dtype, copy=False)
        is_outside = ((block < low) | (block > high)).reshape(len(block), -1).any(axis=1)
        if is_outside.any():
            return begin + int(is_outside.argmax())
        begin += len(block)
    return None


def _check_numbers(
    source: str, recorded: Recorded, observation_space: spaces.Dict, action_space: Space
) -> None:
    """Raise `SpaceError` unless the arrays of a file without spaces can be those of a task."""
    observed = under(OBSERVATIONS, recorded.columns)
    shapes = {key: values.shape[1:] for key, values in observed.items()}
    wanted = {key: space.shape for key, space in observation_space.items()}
    if shapes != wanted:
        raise SpaceError(
            f"data set '{source}' has observations of shapes {shapes}, the level shows {wanted}; "
            "use a data set of the same task"
        )
    actions = recorded.columns.get(ACTIONS)
    if actions is None or actions.shape[1:] != action_space.shape:
        shape = None if actions is None else actions.shape[1:]
        raise SpaceError(
            f"data set '{source}' has actions of shape {shape}, the environment takes "
            f"{action_space}; use a data set of the same task"
        )
    if bounds_of(action_space) is None:
        raise SpaceError(
            f"a file without a description of its spaces has no actions in {action_space}; write "
            "it with coach_rl (--record), or as a Minari data set"
        )
    _check_actions(source, recorded, action_space)


def bounds_of(space: Space) -> tuple[Array, Array] | None:
    """The smallest and the largest values of a space that has one array for them, else None."""
    match space:
        case spaces.Box():
            return space.low, space.high
        case spaces.Discrete():
            return np.asarray(space.start), np.asarray(space.start + space.n - 1)
        case spaces.MultiDiscrete():
            return np.asarray(space.start), np.asarray(space.start + space.nvec - 1)
        case spaces.MultiBinary():
            return np.zeros(space.shape), np.ones(space.shape)
    return None
