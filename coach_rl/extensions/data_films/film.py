"""Films of a data set's episodes, of the pictures that are among its observations."""

import numpy as np

from coach_rl.cli.parser import Given
from coach_rl.cli.terminal import short
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import Array
from coach_rl.core.shown_text import printable
from coach_rl.extensions.data.files import open_data
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.extensions.films.video import Film, require_writable
from coach_rl.memories.batches import ACTIONS, NEXT_OBSERVATIONS, OBSERVATIONS, REWARDS

_COLOURS = (1, 3)
"""Numbers of colours of pictures: grey, or red, green and blue."""


def write_film(given: Given) -> int:
    """Write the film of some episodes of a data set; the exit code.

    Raises:
        ConfigurationError: The data set has no pictures, or no such episode.
    """
    require_writable(given.file.name)
    recorded = open_data(given.data).recorded
    first = given.episode or 0
    count = given.episodes or 1
    film = film_of(recorded, given.data, key=given.key, first=first, count=count)
    film.write(given.file)
    print(f"{short(given.file)}: {len(film.frames):,} frames of {count:,} episodes")
    return 0


def film_of(recorded: Recorded, source: str, *, key: str | None, first: int, count: int) -> Film:
    """The film of episodes `first` to `first + count - 1`.

    Args:
        recorded: The data set's transitions.
        source: Its name, for messages.
        key: The observation with the pictures; None: the only one.
        first: Number of the first episode, from 0.
        count: Number of episodes, 1 or more.

    Raises:
        ConfigurationError: There are no such pictures, or no such episodes.
    """
    key = _key(recorded, source, key)
    known = len(recorded.begins)
    if first < 0 or count < 1 or first + count > known:
        raise ConfigurationError(
            f"the data set '{source}' has episodes 0 to {known - 1}, got --episode {first} with "
            f"--episodes {count}; give numbers among these"
        )
    lengths = recorded.lengths[first : first + count]
    film = Film(episodes=count)
    film.expect(lengths.tolist())
    for episode in range(first, first + count):
        _add_episode(film, recorded, key, episode)
    return film


def _key(recorded: Recorded, source: str, key: str | None) -> str:
    """The key of the observation with the pictures."""
    columns = recorded.columns
    keys = [path.removeprefix(OBSERVATIONS) for path in columns if path.startswith(OBSERVATIONS)]
    found = [each for each in keys if _are_pictures(columns[f"{OBSERVATIONS}{each}"])]
    if key in found or (key is None and len(found) == 1):
        return key or found[0]
    shown = ", ".join(map(printable, sorted(keys)))
    if not found:
        raise ConfigurationError(
            f"the data set '{source}' has no pictures, uint8 [height, width, colours], among its "
            f"observations ({shown}); `coach evaluate RUN --record DATA -dg` films while it records"
        )
    among = ", ".join(map(printable, sorted(found)))
    wanted = "several" if key is None else f"no pictures in '{printable(key)}'"
    raise ConfigurationError(f"the data set '{source}' has {wanted}; give --key one of {among}")


def _are_pictures(column: Array) -> bool:
    """Return whether a column [T, ...] has pictures, with an axis for colours or without."""
    is_grey = column.ndim == 3
    return column.dtype == np.uint8 and (
        is_grey or (column.ndim == 4 and column.shape[-1] in _COLOURS)
    )


def _add_episode(film: Film, recorded: Recorded, key: str, episode: int) -> None:
    """Add the frames of an episode: its observations, and what the last one led to."""
    columns = recorded.columns
    begin = int(recorded.begins[episode])
    length = int(recorded.lengths[episode])
    total = 0.0
    for step in range(length + 1):
        is_last = step == length
        if step:
            total += float(columns[REWARDS][begin + step - 1])
        if not is_last and not film.wants(step):
            continue
        prefix, place = (NEXT_OBSERVATIONS, -1) if is_last else (OBSERVATIONS, 0)
        picture = np.asarray(columns[f"{prefix}{key}"][begin + step + place])
        acted = columns.get(ACTIONS)
        action = "" if is_last or acted is None else f", action {_shown(acted[begin + step])}"
        caption = f"episode {episode}, step {step}, return {total:.4g}{action}"
        film.add(_in_colours(picture), caption, is_last=is_last)


def _shown(action: Array) -> str:
    """An action in few characters."""
    values = np.atleast_1d(action)
    if values.size > 1:
        return "[" + ", ".join(f"{each:.2g}" for each in values.ravel()[:_MOST_SHOWN]) + "]"
    return f"{values.item():.3g}"


_MOST_SHOWN = 6
"""Numbers of an action in a caption."""


def _in_colours(picture: Array) -> Array:
    """A picture [height, width, 3]; grey ones have three equal colours."""
    with_colours = picture[..., None] if picture.ndim == 2 else picture
    return np.broadcast_to(with_colours, (*with_colours.shape[:2], 3))
