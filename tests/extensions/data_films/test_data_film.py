"""Films of the pictures in data sets, and what is refused."""

import numpy as np
import pytest
from PIL import Image

from coach_rl.cli.main import main
from coach_rl.core.errors import ConfigurationError
from coach_rl.extensions.data.recorded import Recorded
from coach_rl.extensions.data_films.film import film_of
from coach_rl.memories.batches import NEXT_OBSERVATIONS, OBSERVATIONS


def pictures(count, colours=3, first=0):
    """Pictures [count, 4, 6, colours] of one brightness each: 10, 20, ..."""
    values = 10 * np.arange(1 + first, 1 + first + count, dtype=np.uint8)
    return np.broadcast_to(values[:, None, None, None], (count, 4, 6, colours)).copy()


def episodes(**observations):
    """Two episodes, of two and three steps; picture n follows on picture n - 1."""
    columns = {"/actions": np.arange(5), "/rewards": np.array([1.0, 2, 3, 4, 5])}
    ends = np.array([0, 1, 0, 0, 1], np.bool_)
    columns |= {"/terminated": ends, "/truncated": np.zeros(5, np.bool_)}
    columns |= {"/durations": np.ones(5, np.int64)}
    for key, make in observations.items():
        columns[f"{OBSERVATIONS}{key}"] = make(5)
        columns[f"{NEXT_OBSERVATIONS}{key}"] = make(5, first=1)
    return Recorded(columns, np.array([0, 2]))


def grey(count, first=0):
    return pictures(count, 1, first)[..., 0]


def single(count, first=0):
    return pictures(count, 1, first)


def numbers(count, first=0):
    return np.zeros((count, 3))


@pytest.mark.parametrize("make", [pictures, single, grey])
def test_frames_are_the_pictures_of_each_step_and_the_last(make):
    film = film_of(episodes(camera=make, x=numbers), "mine", key=None, first=0, count=2)
    brightness = [int(frame.picture[0, 0, 0]) for frame in film.frames]
    assert brightness == [10, 20, 30, 30, 40, 50, 60]
    assert all(frame.picture.shape == (4, 6, 3) for frame in film.frames)
    assert [frame.caption for frame in film.frames[:4]] == [
        "episode 0, step 0, return 0, action 0",
        "episode 0, step 1, return 1, action 1",
        "episode 0, step 2, return 3",
        "episode 1, step 0, return 0, action 2",
    ]
    assert film.frames[-1].caption == "episode 1, step 3, return 12"


def test_actions_of_several_numbers_are_short():
    recorded = episodes(camera=pictures)
    recorded.columns["/actions"] = np.full((5, 9), 0.123456)
    film = film_of(recorded, "mine", key=None, first=1, count=1)
    assert film.frames[0].caption.endswith("action [0.12, 0.12, 0.12, 0.12, 0.12, 0.12]")


@pytest.mark.parametrize(
    ("observations", "changes", "message"),
    [
        ({"x": numbers}, {}, r"no pictures, uint8 .* \(x\); `coach evaluate RUN --record"),
        ({"a": grey, "b": grey}, {}, "has several; give --key one of a, b"),
        ({"a": grey, "x": numbers}, {"key": "x"}, "no pictures in 'x'; give --key one of a"),
        ({"a": grey}, {"first": 2}, "episodes 0 to 1, got --episode 2 with --episodes 1"),
        ({"a": grey}, {"count": 3}, "episodes 0 to 1, got --episode 0 with --episodes 3"),
        ({"a": grey}, {"count": 0}, "episodes 0 to 1, got --episode 0 with --episodes 0"),
        ({"a": grey}, {"first": -1}, "episodes 0 to 1, got --episode -1"),
    ],
)
def test_what_cannot_be_filmed_is_refused(observations, changes, message):
    chosen = {"key": None, "first": 0, "count": 1} | changes
    with pytest.raises(ConfigurationError, match=message):
        film_of(episodes(**observations), "mine", **chosen)


def test_command_writes_the_film_of_a_file(tmp_path, capsys):
    data = tmp_path / "mine.npz"
    shown = np.concatenate([pictures(3), pictures(1, first=3)])
    np.savez(
        data,
        observations=shown,
        next_observations=pictures(4, first=1),
        actions=np.zeros((4, 1), np.float32),
        rewards=np.ones(4),
        terminals=np.array([0, 0, 0, 1], np.bool_),
    )
    film = tmp_path / "films" / "mine.gif"
    assert main(["data", "film", str(data), str(film)]) == 0
    assert "5 frames of 1 episodes" in capsys.readouterr().out
    with Image.open(film) as image:
        assert image.n_frames == 5
