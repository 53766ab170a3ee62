"""Minari data sets, out of a memory and into one.

A data set is named by its Minari id, e.g. `pendulum/random-v0`, or by a path, which starts with a
slash, a dot or a tilde. Nothing is ever downloaded here. A plain observation, which is stored under
the one key `observation`, is written without its key, as Minari has it.
"""

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from gymnasium import spaces

from coach_rl.core.equal_spaces import meaning_of
from coach_rl.core.errors import (
    ConfigurationError,
    SpaceError,
    how_to_install,
    in_one_line,
    warn,
)
from coach_rl.core.records import Array, BoolArray, IntArray
from coach_rl.core.spaces import Space, is_float_box
from coach_rl.memories.batches import (
    ACTION_PARTS,
    ACTIONS,
    DURATIONS,
    FOLLOWS,
    INFOS,
    MASK,
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    REWARDS,
    TERMINATED,
    TRUNCATED,
    extra,
)

PLAIN_KEY = "observation"
Shown = Array | dict[str, Array]
"""An array, or one for each key of a Dict space."""
DURATION = "duration"
"""The info under which decisions that lasted more than one simulator step have their duration, an
integer of 1 or more; 0 for the reset."""


def write_minari(
    trajectories: Mapping[str, Array],
    target: str,
    *,
    observation_space: spaces.Dict,
    action_space: Space,
    agent: str = "agent",
    description: str = "",
) -> None:
    """Write what a memory shows as a new data set; what was cut off counts as truncated.

    Args:
        trajectories: What `trajectories()` of a memory returns, [N, T, ...] each.
        target: The data set's id or path.
        observation_space: Of the memory, which is the agent's behind its InputFilter.
        action_space: Where the agent acts.
        agent: The agent's name in the trajectories.
        description: A sentence to keep with it.

    Raises:
        ConfigurationError: Minari is not installed, the data set exists, or there is nothing to
            write.
    """
    minari = _minari()
    name, folder = located(target)
    if folder.exists():
        raise ConfigurationError(
            f"the data set '{target}' exists already in {folder}; write under another name"
        )
    if not trajectories[MASK].any():
        raise ConfigurationError(
            f"there are no transitions to write into data set '{target}'; let the agent act first"
        )
    folder.mkdir(parents=True)
    storage = import_module("minari.dataset.minari_storage").MinariStorage.new(
        folder / "data",
        observation_space=_shown_space(observation_space),
        action_space=_nested(action_space, spaces.Dict),
        jpeg_encoding=False,  # which would lose bits
    )
    about = {"dataset_id": name, "minari_version": minari.__version__}
    storage.update_metadata(about | ({"description": description} if description else {}))
    storage.update_episodes(_buffers(trajectories, observation_space, action_space, agent))


def read_minari(
    source: str, *, observation_space: spaces.Dict, action_space: Space
) -> Iterator[dict[str, Array]]:
    """The episodes of a data set, one after the other.

    Args:
        source: The data set's id or path.
        observation_space: What the reader keeps.
        action_space: Where the reader's agent acts.

    Yields:
        Columns [T, ...] as a memory names them; an episode's last transition always ends it. Those
        of infos, one number each, are those of the first episode.

    Raises:
        ConfigurationError: Minari or the data set is not there, or the data set has other spaces.
    """
    try:
        data = _opened(source)
        has = (data.observation_space, data.action_space)
        check_spaces(source, has, observation_space, action_space)
        names: list[str] | None = None
        missing: set[str] = set()
        for episode in data.iterate_episodes():
            if not len(episode):
                continue
            durations, infos = _infos(episode)
            names = [*infos] if names is None else names
            missing |= {*names} - infos.keys()
            none = np.zeros(len(episode))
            yield {
                **_columns(episode),
                DURATIONS: durations,
                **{extra(f"{INFOS}{name}"): infos.get(name, none) for name in names},
            }
        if missing:
            warn(
                f"the infos {', '.join(sorted(missing))} are not in all episodes of data set "
                f"'{source}'; they are 0 there"
            )
    except (OSError, ValueError, KeyError) as error:
        raise ConfigurationError(
            f"the data set '{source}' cannot be read: {in_one_line(error)}"
        ) from error


def minari_spaces(source: str) -> tuple[spaces.Dict, Space]:
    """The spaces of a data set's observations and actions, with the parts' flat names.

    Raises:
        ConfigurationError: Minari or the data set is not there.
    """
    data = _opened(source)
    acted = data.action_space
    if isinstance(acted, spaces.Dict | spaces.Tuple):
        acted = spaces.Dict(_flat(acted, ""))
    return spaces.Dict(_flat(data.observation_space, PLAIN_KEY)), acted


def minari_steps(source: str) -> int:
    """The number of a data set's transitions; ConfigurationError where there is none."""
    return int(_opened(source).total_steps)


def minari_infos(source: str) -> list[str]:
    """The names of the infos that are read of a data set, and `duration` where that is one."""
    episodes = _opened(source).iterate_episodes()
    first = next((each for each in episodes if len(each)), None)
    if first is None:
        return []
    durations, infos = _infos(first)
    return sorted([*infos, *[DURATION] * bool((durations != 1).any())])


def _opened(source: str) -> Any:
    minari = _minari()
    _, folder = located(source)
    if not (folder / "data" / "metadata.json").is_file():
        raise ConfigurationError(
            f"there is no data set '{source}' in {folder}; give the path of one (starting with /, "
            f". or ~), or fetch it by its id with `minari download {source}`"
        )
    return minari.MinariDataset(folder / "data")


def located(name: str) -> tuple[str, Path]:
    """The id and the folder of a data set."""
    if name.startswith(("/", ".", "~")):
        folder = Path(name).expanduser().resolve()
        return folder.name, folder
    try:
        import_module("minari.dataset.minari_dataset").parse_dataset_id(name)
    except (ValueError, TypeError):  # a missing version makes Minari convert None to a number
        raise ConfigurationError(
            f"'{name}' is not a Minari data set's id; write NAME-v0 or NAMESPACE/NAME-v0, or a "
            "path that starts with /, . or ~"
        ) from None
    return name, Path(import_module("minari.storage.datasets_root_dir").get_dataset_path(name))


def _buffers(
    trajectories: Mapping[str, Array],
    observation_space: spaces.Dict,
    action_space: Space,
    agent: str,
) -> Iterator[object]:
    """An episode buffer for each episode of each row."""
    make = import_module("minari.data_collector.episode_buffer").EpisodeBuffer
    ends = trajectories[TERMINATED] | trajectories[TRUNCATED]
    if FOLLOWS in trajectories:
        ends[:, :-1] |= ~trajectories[FOLLOWS][:, 1:]
    for row, begin, end in episodes_of(trajectories[MASK], ends):
        steps = slice(begin, end)

        def column(path: str, row: int = row, steps: slice = steps) -> Array:
            return trajectories[path][row, steps]

        observations = {
            key: np.concatenate(
                [column(f"{OBSERVATIONS}{key}"), column(f"{NEXT_OBSERVATIONS}{key}")[-1:]]
            ).astype(space.dtype, copy=False)
            for key, space in observation_space.spaces.items()
        }
        truncations = column(TRUNCATED).copy()
        truncations[-1] |= not column(TERMINATED)[-1]
        durations = np.concatenate([[0], column(DURATIONS)])  # infos have one for the reset
        yield make(
            observations=_shown(observations),
            actions=_actions(column, action_space, agent),
            rewards=column(REWARDS).astype(np.float64),
            terminations=column(TERMINATED),
            truncations=truncations,
            infos={DURATION: durations} if (durations[1:] != 1).any() else None,
        )


def _actions(column: Callable[[str], Array], space: Space, agent: str) -> Shown:
    path = f"/agents/{agent}/actions"
    if isinstance(space, spaces.Dict):
        parts = {
            key: column(f"{path}/{key}").astype(part.dtype, copy=False)
            for key, part in space.spaces.items()
        }
        shown: Shown = _nested(parts, dict)
        return shown
    return column(path).astype(space.dtype, copy=False)


def episodes_of(mask: BoolArray, ends: BoolArray) -> Iterator[tuple[int, int, int]]:
    """Row, first step and the step behind the last of each episode, [N, T] cut at its ends."""
    for row, (valid, ended) in enumerate(zip(mask, ends, strict=True)):
        begin = 0
        length = int(valid.sum())
        for end in [*(np.flatnonzero(ended[:length]) + 1).tolist(), length]:
            if end > begin:
                yield row, begin, end
            begin = end


def _columns(episode: Any) -> dict[str, Array]:
    """An episode as a memory's columns, [T, ...] each."""
    time = len(episode)
    truncated = np.asarray(episode.truncations, np.bool_).copy()
    terminated = np.asarray(episode.terminations, np.bool_)
    truncated[-1] |= not terminated[-1]
    columns = {
        REWARDS: np.asarray(episode.rewards),
        TERMINATED: terminated,
        TRUNCATED: truncated,
    }
    for key, values in _flat(episode.observations, PLAIN_KEY).items():
        columns[f"{OBSERVATIONS}{key}"] = np.asarray(values)[:time]
        columns[f"{NEXT_OBSERVATIONS}{key}"] = np.asarray(values)[1 : time + 1]
    for key, values in _flat(episode.actions, "").items():
        columns[f"{ACTION_PARTS}{key}" if key else ACTIONS] = np.asarray(values)
    return columns


def _infos(episode: Any) -> tuple[IntArray, dict[str, Array]]:
    """An episode's durations, and its infos of one number each, float64, [T] each."""
    time = len(episode)
    found = {
        name: values[len(values) - time :]  # there is one more where the reset has infos
        for name, values in _flat(episode.infos or {}, "").items()
        if isinstance(values, np.ndarray)
        and values.ndim == 1
        and values.dtype.kind in "biuf"
        and len(values) in (time, time + 1)
    }
    durations = np.ones(time, np.int64)
    if _is_duration((episode.infos or {}).get(DURATION), time):
        durations = found.pop(DURATION).astype(np.int64)
    return durations, {name: values.astype(np.float64) for name, values in found.items()}


def _is_duration(values: Any, time: int) -> bool:
    """True if an info is as `write_minari` writes durations, not another of that name."""
    return bool(
        isinstance(values, np.ndarray)
        and values.dtype.kind in "iu"
        and values.shape == (time + 1,)
        and values[0] == 0
        and (values[1:] >= 1).all()
    )


def _flat(parts: Any, name: str) -> dict[str, Any]:
    """The parts of nested dicts and tuples, of spaces or of values, by their keys and slashes.

    Args:
        parts: A space or a value.
        name: The name of one that has no parts.
    """
    if not isinstance(parts, Mapping | tuple | spaces.Tuple):
        return {name: parts}
    below = parts.items() if isinstance(parts, Mapping) else enumerate(parts)
    return {
        f"{key}/{inner}" if inner else str(key): part
        for key, whole in below
        for inner, part in _flat(whole, "").items()
    }


def check_spaces(
    source: str, has: tuple[Space, Space], observation_space: spaces.Dict, action_space: Space
) -> None:
    """Raise `SpaceError` unless the numbers of a data set mean what those of a memory do.

    Bounds of actions count, and those of observations where integers meet floats.

    Args:
        source: The data set.
        has: The spaces of its observations and actions.
        observation_space: What the reader keeps.
        action_space: Where the reader's agent acts.
    """
    seen, acted = has
    observed = spaces.Dict(_flat(seen, PLAIN_KEY))
    if isinstance(acted, spaces.Dict | spaces.Tuple):
        acted = spaces.Dict(_flat(acted, ""))
    converted = [
        (f"observations '{key}'", observed.spaces.get(key, part), part, True)
        for key, part in observation_space.items()
        if is_float_box(part) != is_float_box(observed.spaces.get(key, part))
    ]
    for what, theirs, ours, bounds in (
        ("observations", observed, observation_space, False),
        ("actions", acted, action_space, False),
        ("actions", acted, action_space, True),
        *converted,
    ):
        meant = meaning_of(theirs, bounds=bounds)
        kept = meaning_of(ours, bounds=bounds)
        if meant != kept:
            raise SpaceError(
                f"data set '{source}' has {what} {meant}, the memory keeps {kept}; use a data set "
                "of the same task, or filters that make its spaces (LinearBoxToBoxMap for bounds "
                "of actions, ObservationToUInt8Filter for bytes)"
            )


def _shown(observations: dict[str, Array]) -> Shown:
    is_plain = set(observations) == {PLAIN_KEY}
    return observations[PLAIN_KEY] if is_plain else _nested(observations, dict)


def _shown_space(space: spaces.Dict) -> Space:
    is_plain = set(space.spaces) == {PLAIN_KEY}
    return space[PLAIN_KEY] if is_plain else _nested(space, spaces.Dict)


def _nested(parts: Any, make: Callable[[dict[str, Any]], Any]) -> Any:
    """Parts by flat name as dicts in dicts, which Minari reads back; what has no parts, itself."""
    if not isinstance(parts, Mapping):
        return parts
    below: dict[str, dict[str, Any]] = {}
    for name, part in parts.items():
        key, _, rest = name.partition("/")
        below.setdefault(key, {})[rest] = part
    return make(
        {key: each[""] if "" in each else _nested(each, make) for key, each in below.items()}
    )


def _minari() -> ModuleType:
    for needed in ("minari", "h5py"):
        try:
            import_module(needed)
        except ImportError as error:
            raise ConfigurationError(
                f"Minari data sets need the package '{needed}', which cannot be imported "
                f"({error}); {how_to_install('minari')}"
            ) from error
    return import_module("minari")
