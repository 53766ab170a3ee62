"""Videos in run folders: where they are, and that nothing else in the folder knows of them."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from coach_rl.cli.main import main
from coach_rl.core.errors import CoachWarning
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.mujoco import batch
from coach_rl.extensions.films.episode_recorder import VideoParameters, evaluation_film
from coach_rl.extensions.testing import assert_same_state
from coach_rl.sessions.evaluation import evaluate_run
from coach_rl.sessions.session import RunResult, RunSettings, resume_experiment, run_experiment
from tests.environments import little_environments
from tests.extensions.films.easel import Easel
from tests.small_runs import QUIET, experiment, log_of, manifest_of, ppo, preset, state_of

FILMED = Path(__file__).parents[2] / "filmed_preset.py"
VIDEO = VideoParameters(frame_skip=2)
SETTINGS = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(2))


@pytest.fixture(autouse=True)
def easel(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "FrameRenderer", Easel)
    monkeypatch.setattr(Easel, "drawn", [])


def run(root: Path, video: VideoParameters | None = VIDEO) -> RunResult:
    settings = replace(SETTINGS, parts=() if video is None else (video,))
    task = Runtime(seed=3, device="cpu")
    return run_experiment(preset(FILMED).build(), task, name="maze", root=root, settings=settings)


def videos(run: Path) -> list[str]:
    return sorted(path.name for path in (run / "videos").iterdir())


def frames(path: Path) -> int:
    with Image.open(path) as film:
        return int(getattr(film, "n_frames", 1))


def test_run_films_every_evaluation(tmp_path: Path) -> None:
    folder = run(tmp_path).folder
    assert videos(folder.path) == ["step_128.gif", "step_128_final.gif", "step_64.gif"]
    assert all(2 < frames(folder.path / "videos" / name) <= 11 for name in videos(folder.path))


def test_run_continues_where_a_video_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise OSError("no room")

    monkeypatch.setattr(Image.Image, "save", failing)
    with pytest.warns(CoachWarning, match="the video step_64: no room .*; the run continues"):
        result = run(tmp_path)
    assert result.summary is not None
    assert "videos that could not be written: 3" in result.incidents
    assert videos(result.folder.path) == []


def test_a_run_is_the_same_to_the_last_bit_filmed_or_not(tmp_path: Path) -> None:
    filmed, plain = run(tmp_path / "filmed").folder, run(tmp_path / "plain", None).folder
    assert not (plain.path / "videos").exists()
    ours, theirs = (log_of(folder, without=["file"]) for folder in (filmed, plain))
    assert ours == theirs
    assert any(line["kind"] == "train" for line in ours)
    assert_same_state(state_of(filmed)["agents"], state_of(plain)["agents"])
    left, right = (json.loads(folder.summary.read_text()) for folder in (filmed, plain))
    assert left["evaluated_episodes"] == right["evaluated_episodes"]
    assert manifest_of(filmed)["parameters"] == manifest_of(plain)["parameters"]


def test_evaluate_linked_folder_of_videos_films_nothing_into_it(tmp_path: Path) -> None:
    folder = run(tmp_path, None).folder
    outside = tmp_path / "outside"
    outside.mkdir()
    (folder.path / "videos").symlink_to(outside)
    with pytest.warns(CoachWarning):
        evaluate_run(folder.path, episodes=EnvironmentEpisodes(1), parts=[VIDEO])
    assert not list(outside.iterdir())


def test_resume_with_video_films_again(tmp_path: Path) -> None:
    folder = run(tmp_path, None).folder
    settings = replace(QUIET, parts=(VIDEO,))
    resume_experiment(folder.path, steps=EnvironmentSteps(192), settings=settings)
    assert videos(folder.path) == ["step_192.gif"]


def test_evaluate_run_films_beside_the_evaluation(tmp_path: Path) -> None:
    folder = run(tmp_path, None).folder
    plain, _ = evaluate_run(folder.path, episodes=EnvironmentEpisodes(3))
    filmed, file = evaluate_run(folder.path, episodes=EnvironmentEpisodes(3), parts=[VIDEO])
    assert filmed.scalars == plain.scalars
    film = evaluation_film(file)
    assert film.name == f"{file.stem}_evaluation" == "step_128_2_evaluation"
    assert videos(folder.path) == [f"{film.name}.gif"]


def test_video_flags_film_runs_and_evaluations(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["-p", str(FILMED), "-ntb", "-c", "-dg", "--video_frames", "4", "--video_skip", "3"]
    assert main(words) == 0
    (folder,) = (tmp_path / "experiments" / "filmed_preset").iterdir()
    assert len(videos(folder)) == 3
    assert all(frames(folder / "videos" / name) <= 4 for name in videos(folder))
    assert f"videos:     {folder.relative_to(tmp_path)}/videos" in capsys.readouterr().out
    assert main(["--evaluate", "1", "-crd", str(folder), "-c", "-dg"]) == 0
    assert "filmed as  " in capsys.readouterr().out
    assert "step_128_evaluation.gif" in videos(folder)


def test_run_with_nested_actions_is_filmed(tmp_path: Path) -> None:
    gadget = GymnasiumParameters(level=f"{little_environments.__name__}:Gadget")
    agent = replace(ppo(), arguments={"drive/1/far": ("drive/0", 2)})
    manager = experiment(agent, gadget, num_envs=3, training=100)
    settings = replace(QUIET, final_episodes=EnvironmentEpisodes(1), parts=(VideoParameters(),))
    task = Runtime(seed=1, device="cpu")
    result = run_experiment(manager, task, name="gadget", root=tmp_path, settings=settings)
    assert len(videos(result.folder.path)) == 1
