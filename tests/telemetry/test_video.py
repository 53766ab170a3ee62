"""Films of any length in few frames, and the files they become."""

import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image

from coach_rl.core.errors import RunError
from coach_rl.telemetry.video import (
    CaptionLine,
    Film,
    Shot,
    VideoParameters,
    write_video,
)


def plain(value):
    return np.full((8, 12, 3), value, np.uint8)


def moving(frames, side=64, noise=0):
    """A red dot that crosses a grey slope, with noise if asked for."""
    rng = np.random.default_rng(0)
    shots = []
    for step in range(frames):
        frame = np.repeat(np.linspace(90, 150, side)[None, :, None], side, axis=0)
        frame = np.repeat(frame, 3, axis=2) + rng.uniform(-noise, noise, (side, side, 3))
        left = step * (side - 4) // max(1, frames - 1)
        frame[10:14, left : left + 4] = (230, 20, 20)
        shots.append(Shot(frame.astype(np.uint8), (CaptionLine(f"step {step}"),)))
    return shots


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
    film = Film(frame_skip=skip, max_frames=most)
    for step in range(length):
        if film.wants(step):
            film.add(np.array(step))
    film.end(np.array(length))
    steps = [int(shot.frame) for shot in film.shots]
    assert len(steps) <= most
    assert steps[0] == 0
    assert steps[-1] == length
    assert len({*np.diff(steps[:-1])}) <= 1
    if length > 2 * skip * most:
        assert len(steps) >= most // 2


def test_gif_holds_last_frame(tmp_path):
    (path,) = write_video(moving(10), tmp_path / "videos" / "step_5", VideoParameters())
    assert path == tmp_path / "videos" / "step_5.gif"
    frames, durations = read(path)
    assert frames.shape == (10, 64 + 15, 64, 3)
    assert durations == [40] * 9 + [1500]
    assert [entry.name for entry in path.parent.iterdir()] == ["step_5.gif"]


def test_gif_small_mark_keeps_colour(tmp_path):
    (path,) = write_video(moving(6, side=200, noise=3), tmp_path / "film", VideoParameters())
    frames, _ = read(path)
    assert np.abs(frames[0, 11, 1].astype(int) - (230, 20, 20)).max() < 8
    floor = frames[0, 150].astype(int)
    assert np.abs(floor.mean(axis=1) - np.linspace(90, 150, 200)).mean() < 6


def test_video_large_frames_are_scaled_down(tmp_path):
    wide = [Shot(np.zeros((200, 400, 3), np.uint8), ())] * 2
    (path,) = write_video(wide, tmp_path / "wide", VideoParameters(max_side=100))
    assert read(path)[0].shape[1:3] == (50, 100)
    (path,) = write_video([Shot(plain(9), ())], tmp_path / "small", VideoParameters())
    assert read(path)[0].shape[1:3] == (8, 12)


def test_gif_too_large_drops_inner_frames(tmp_path):
    shots = moving(40, noise=60)
    (whole,) = write_video(shots, tmp_path / "whole", VideoParameters())
    most = whole.stat().st_size / 3e6
    (path,) = write_video(shots, tmp_path / "part", VideoParameters(max_megabytes=most))
    assert path.stat().st_size <= most * 1e6
    all_frames, _ = read(whole)
    frames, durations = read(path)
    assert 5 < len(frames) < 20
    assert durations[-1] == 1500
    assert np.abs(frames[0].astype(int) - all_frames[0]).mean() < 12
    assert np.abs(frames[-1].astype(int) - all_frames[-1]).mean() < 12


def test_caption_lines_have_own_colours(tmp_path):
    green = (20, 220, 20)
    caption = (CaptionLine("step 3"), CaptionLine("low: goal 1", green, has_dot=True))
    (path,) = write_video([Shot(moving(1)[0].frame, caption)], tmp_path / "film", VideoParameters())
    (frame,), _ = read(path)
    assert frame.shape[0] == 64 + 30
    assert (np.abs(frame[64:79].astype(int) - 235).max(axis=-1) < 40).any()
    dot = frame[64 + 15 + 7, 10].astype(int)
    assert np.abs(dot - green).max() < 12


def test_video_failed_write_leaves_nothing(tmp_path, monkeypatch):
    write_video(moving(3), tmp_path / "film", VideoParameters())
    write_video(moving(5), tmp_path / "film", VideoParameters())
    assert len(read(tmp_path / "film.gif")[0]) == 5
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(RunError):
        write_video(moving(2), tmp_path / "file" / "film", VideoParameters())
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "film.gif"]


def test_mp4_has_all_frames_and_holds_last(tmp_path):
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="it comes with the extra video")
    shots = [Shot(np.full((33, 51, 3), 10 * step, np.uint8), ()) for step in range(20)]
    parameters = VideoParameters(formats=("mp4", "gif"))
    files = write_video(shots, tmp_path / "film", parameters)
    assert [file.name for file in files] == ["film.mp4", "film.gif"]
    # Not by imageio-ffmpeg's own reader, which leaves pipes open.
    decode = [ffmpeg.get_ffmpeg_exe(), "-v", "error", "-i", str(files[0])]
    decode += ["-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    decoded = subprocess.run(decode, capture_output=True, check=True).stdout
    frames = np.frombuffer(decoded, np.uint8).reshape(-1, 32, 50, 3)  # H.264 wants even sides
    assert len(frames) == 20 + 38
    brightness = [frame.mean() for frame in frames]
    np.testing.assert_allclose(brightness[:20], np.arange(20) * 10, atol=6)
    np.testing.assert_allclose(brightness[20:], 190, atol=6)
