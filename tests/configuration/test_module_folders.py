"""Modules of the user's own: found in the working directory, and again when the run is opened."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import coach_rl
from coach_rl.configuration.trust import remember_own_code
from coach_rl.configuration.user_modules import let_import_named, let_import_recorded

ENVIRONMENT = """
from gymnasium.envs.classic_control import CartPoleEnv

import my_constants

class MyEnv(CartPoleEnv):
    def __init__(self, render_mode=None):
        super().__init__(render_mode=render_mode)
        self.gravity = my_constants.GRAVITY
"""
OPENED = """
import sys
from pathlib import Path
import coach_rl
run = Path(sys.argv[1])
coach_rl.evaluate_run(run, episodes=coach_rl.EnvironmentEpisodes(1))
coach_rl.resume_experiment(run, steps=coach_rl.EnvironmentSteps(600))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "my_env.py").write_text(ENVIRONMENT)
    (folder / "my_constants.py").write_text("GRAVITY = 9.0\n")
    return folder


@pytest.fixture(autouse=True)
def search_path(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


def python(folder: Path, *words: str) -> str:
    """The standard error of Python started in a folder, which has to succeed."""
    path = os.pathsep.join([str(Path(coach_rl.__file__).parent.parent), *sys.path])
    done = subprocess.run(
        [sys.executable, "-P", *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


def test_module_in_working_directory_trains_and_is_found_from_elsewhere(
    project: Path, tmp_path: Path
) -> None:
    words = ("-lvl", "my_env:MyEnv", "--steps", "300", "-ntb", "--plain")
    python(project, "-m", "coach_rl", "-p", "CartPole_PPO", *words)
    (run,) = project.glob("experiments/CartPole_PPO/MyEnv*")
    files = json.loads((run / "manifest.json").read_text())["module_folders"]
    assert {folder: sorted(names) for folder, names in files.items()} == {
        str(project): ["my_constants.py", "my_env.py"]
    }
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    assert "another" not in python(elsewhere, "-c", OPENED, str(run))
    (project / "my_constants.py").write_text("GRAVITY = 9.0  # edited\n")
    later = OPENED.replace("600", "900")
    assert "another my_constants.py" in python(elsewhere, "-c", later, str(run))


def test_recorded_folder_is_searched_only_if_own_runs_have_used_it(project: Path) -> None:
    before = list(sys.path)
    let_import_recorded({str(project): {}})
    assert sys.path == before
    remember_own_code([], None, [str(project)])
    let_import_recorded({str(project): {}})
    assert sys.path == [str(project), *before]


@pytest.mark.parametrize(
    ("name", "is_found"),
    [
        ("my_env:MyEnv", True),
        ("package.module:Env", True),
        ("package:Env", False),
        ("another:Env", False),
        ("gymnasium:CartPole-v1", False),
        ("coach_rl.environments:make", False),
    ],
)
def test_folder_is_searched_if_it_has_the_named_module(
    project: Path, name: str, is_found: bool
) -> None:
    for package in ("package", "gymnasium", "coach_rl"):
        (project / package).mkdir()
        (project / package / "module.py").touch()
    let_import_named([name], project)
    assert (str(project) in sys.path) == is_found
