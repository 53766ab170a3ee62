"""Films of any length in few frames, and the files they become."""

import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from coach_rl.core.errors import RunError
from coach_rl.extensions.films.video import Film, FilmParameters


def film_of(*pictures, **options):
    film = Film(FilmParameters(**options))
    for step, picture in enumerate(pictures):
        film.add(picture, f"step {step}")
    return film


def moving(frames, side=64, noise=0):
    """A red dot that crosses a grey slope, with noise if asked for."""
    rng = np.random.default_rng(0)
    pictures = []
    for step in range(frames):
        frame = np.repeat(np.linspace(90, 150, side)[None, :, None], side, axis=0)
        frame = np.repeat(frame, 3, axis=2) + rng.uniform(-noise, noise, (side, side, 3))
        left = step * (side - 4) // max(1, frames - 1)
        frame[10:14, left : left + 4] = (230, 20, 20)
        pictures.append(frame.astype(np.uint8))
    return film_of(*pictures)


def read(path):
    """Frames [T, height, width, 3] and their durations in milliseconds."""
    frames, durations = [], []
    with Image.open(path) as film:
        for index in range(getattr(film, "n_frames", 1)):
            film.seek(index)
            frames.append(np.asarray(film.convert("RGB")))
            durations.append(film.info["duration"])
    return np.stack(frames), durations


@given(length=st.integers(1, 400), skip=st.integers(1, 5), most=st.integers(2, 30))
@settings(max_examples=80, deadline=None)
def test_film_frames_are_evenly_spread(length, skip, most):
    film = Film(FilmParameters(frame_skip=skip, max_frames=most))
    picture = np.zeros((1, 1, 3), np.uint8)
    for step in range(length):
        if film.wants(step):
            film.add(picture, str(step))
    film.add(picture, str(length), is_last=True)
    steps = [int(frame.caption) for frame in film.frames]
    assert len(steps) <= most
    assert steps[0] == 0
    assert steps[-1] == length
    assert len({*np.diff(steps[:-1])}) <= 1
    if length > 2 * skip * most:
        assert len(steps) >= most // 2


def test_film_keeps_pictures_that_the_environment_draws_over():
    picture = np.zeros((4, 4, 3), np.uint8)
    film = film_of(picture)
    picture[:] = 9
    assert film.frames[0].picture.max() == 0


def test_film_pictures_of_two_sizes_are_refused():
    with pytest.raises(RunError, match="one shape"):
        film_of(np.zeros((4, 6, 3), np.uint8), np.zeros((4, 5, 3), np.uint8))


def test_gif_holds_last_frame(tmp_path):
    path = tmp_path / "videos" / "step_5.gif"
    moving(10).write(path)
    frames, durations = read(path)
    assert frames.shape == (10, 64 + 15, 64, 3)
    assert durations == [40] * 9 + [1500]
    assert [entry.name for entry in path.parent.iterdir()] == ["step_5.gif"]


def test_gif_small_mark_keeps_colour(tmp_path):
    moving(6, side=200, noise=3).write(tmp_path / "film.gif")
    frames, _ = read(tmp_path / "film.gif")
    assert np.abs(frames[0, 11, 1].astype(int) - (230, 20, 20)).max() < 9
    floor = frames[0, 150].astype(int)
    assert np.abs(floor.mean(axis=1) - np.linspace(90, 150, 200)).mean() < 6


def test_film_large_pictures_are_scaled_down():
    wide = np.zeros((200, 400, 3), np.uint8)
    assert film_of(wide, max_side=100).frames[0].picture.shape == (50, 100, 3)
    assert film_of(wide[:8, :12]).frames[0].picture.shape == (8, 12, 3)


def test_video_caption_is_below_the_picture(tmp_path):
    film_of(np.zeros((64, 64, 3), np.uint8)).write(tmp_path / "film.gif")
    (frame,), _ = read(tmp_path / "film.gif")
    assert frame.shape[0] == 64 + 15
    assert (np.abs(frame[64:].astype(int) - 235).max(axis=-1) < 40).any()
    assert frame[:64].max() < 40


@pytest.mark.parametrize(
    ("side", "most", "width"), [(64, 320, 256), (64, 150, 128), (256, 320, 256)]
)
def test_small_pictures_are_enlarged_until_captions_fit(tmp_path, side, most, width):
    film = Film(FilmParameters(max_side=most))
    film.add(np.zeros((side, side, 3), np.uint8), "step 20, return -20, low: goal 3 missed")
    film.write(tmp_path / "film.gif")
    frames, _ = read(tmp_path / "film.gif")
    assert frames.shape[2] == width


def test_video_failed_write_leaves_nothing(tmp_path):
    moving(3).write(tmp_path / "film.gif")
    moving(5).write(tmp_path / "film.gif")
    assert len(read(tmp_path / "film.gif")[0]) == 5
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError):
        moving(2).write(tmp_path / "file" / "film.gif")
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "film.gif"]


def test_mp4_has_all_frames_and_holds_last(tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="it comes with the extra video")
    pictures = [np.full((33, 51, 3), 10 * step, np.uint8) for step in range(20)]
    film_of(*pictures).write(tmp_path / "film.mp4")
    # Not by imageio-ffmpeg's own reader, which leaves pipes open.
    decode = [ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(tmp_path / "film.mp4")]
    decode += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    decoded = subprocess.run(decode, capture_output=True, check=True).stdout
    frames = np.frombuffer(decoded, np.uint8).reshape(-1, 48, 50, 3)  # H.264 wants even sides
    frames = frames[:, :32]  # without the caption
    assert len(frames) == 20 + 38
    brightness = [frame.mean() for frame in frames]
    np.testing.assert_allclose(brightness[:20], np.arange(20) * 10, atol=6)
    np.testing.assert_allclose(brightness[20:], 190, atol=6)
