"""`coach play` and chosen episodes: what is shown and filmed is what was played."""

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from coach_rl.cli.main import main
from coach_rl.core.records import Array
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.extensions.films.playing import play_run
from coach_rl.sessions.session import run_experiment
from tests.small_runs import QUIET, preset


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run on CartPole that has hardly learned anything."""
    changes = {"schedule.training": 256, "schedule.evaluation_interval": None}
    graph_manager = preset("CartPole_PPO").configure(changes)
    root, task = tmp_path_factory.mktemp("experiments"), Runtime(seed=1, device="cpu")
    return run_experiment(graph_manager, task, name="pole", root=root, settings=QUIET).folder.path


class Looker:
    """A screen that remembers captions, and is closed after so many frames."""

    def __init__(self, frames: int = 10_000) -> None:
        self.captions: list[str] = []
        self._frames = frames

    def is_closed(self) -> bool:
        return len(self.captions) >= self._frames

    def wants(self, step: int) -> bool:
        return step >= 0

    def add(self, picture: Array, caption: str, *, is_last: bool = False) -> None:
        assert picture.shape[2] == 3
        assert is_last == caption.endswith("the end")
        self.captions.append(caption)


def test_play_run_shows_every_step(run: Path) -> None:
    screen, ends = Looker(), []
    play_run(
        run,
        screen,
        episodes=EnvironmentEpisodes(2),
        on_episode=lambda episode: ends.append((episode.number, episode.step, episode.reward)),
    )
    (_, first, reward), (_, second, _) = ends
    assert reward == first
    steps = [int(text.split(",")[0].split()[1]) for text in screen.captions]
    assert steps == [*range(first + 1), *range(second + 1)]
    assert screen.captions[first] == f"step {first}, return {first}, the end"
    again = Looker()
    play_run(run, again, episodes=EnvironmentEpisodes(2))
    assert again.captions == screen.captions, "acting greedily on the same starts"


def test_play_run_ends_when_the_screen_is_closed(run: Path) -> None:
    screen = Looker(frames=4)
    play_run(run, screen, episodes=EnvironmentEpisodes(2), is_stopped=screen.is_closed)
    assert len(screen.captions) == 4


def test_play_without_a_display_writes_a_gif(
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SDL_VIDEODRIVER"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    assert main(["play", str(run), "--slow", "2.5"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("there is no display here: drawing a video instead")
    (file,) = tmp_path.glob("*.gif")
    assert file.name.startswith(run.name)
    assert said.endswith(f"written to {file.name}\n")
    with Image.open(file) as film:
        assert film.info["duration"] == 100  # 25 frames a second, slowed down


def test_no_more_frames_are_drawn_than_a_video_has(run: Path, tmp_path: Path) -> None:
    counts: list[tuple[int, int]] = []
    episodes = EnvironmentEpisodes(2)
    play_run(run, tmp_path / "a.gif", episodes=episodes, on_frame=lambda *n: counts.append(n))
    with Image.open(tmp_path / "a.gif") as film:
        frames = getattr(film, "n_frames", 1)
    assert [count for count, _ in counts] == list(range(1, frames + 1))
    assert {expected for _, expected in counts} == {frames}


def test_play_window_shows_the_episode_and_reacts_to_keys(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(os.environ, "SDL_VIDEODRIVER", "dummy")
    import pygame

    from coach_rl.extensions.films.window import Window

    title, shown = [], []
    show = Window._draw

    def press(self: Window, pixels: bytes, size: tuple[int, int]) -> None:
        show(self, pixels, size)
        shown.append(np.array(pygame.surfarray.array3d(pygame.display.get_surface())))
        title.append(pygame.display.get_caption()[0])
        keys = {1: [pygame.K_UP], 2: [pygame.K_SPACE, pygame.K_RIGHT], 4: [pygame.K_q]}
        for key in keys.get(len(shown), [pygame.K_RIGHT]):
            pygame.event.post(pygame.event.Event(pygame.KEYDOWN, key=key))

    monkeypatch.setattr(Window, "_draw", press)
    assert main(["play", str(run), "--episodes", "3", "--slow", "0.1"]) == 0
    assert len(shown) == 4
    assert title[1].endswith(" - speed 2")
    assert title[2].endswith(" - paused")
    assert shown[0].std() > 10
    assert (shown[0] != shown[3]).any()
    assert "space pauses" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("RUN --to pole.avi", "a video is a .gif or an .mp4 file, got 'pole.avi'"),
        ("RUN --level NoSuch-v0 --to a.gif", "NoSuch"),
        ("RUN@7 --to a.gif", "step_7"),
    ],
)
def test_play_error_takes_one_line_and_leaves_nothing(
    words: str,
    message: str,
    run: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["play", *words.replace("RUN", str(run)).split()]) in (1, 2)
    captured = capsys.readouterr()
    assert message in captured.err
    assert captured.err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
