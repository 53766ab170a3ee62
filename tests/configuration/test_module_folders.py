"""Modules of the user's own: found in the working directory, and again when the run is opened."""

import json
import sys
from pathlib import Path

import pytest

import coach_rl
from coach_rl.cli.main import main
from coach_rl.configuration.trust import remember_own_code
from coach_rl.configuration.user_modules import let_import_named, let_import_recorded
from coach_rl.core.errors import CoachWarning

ENVIRONMENT = """
from gymnasium.envs.classic_control import CartPoleEnv

import my_constants

class MyEnv(CartPoleEnv):
    def __init__(self, render_mode=None):
        super().__init__(render_mode=render_mode)
        self.gravity = my_constants.GRAVITY
"""


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "my_env.py").write_text(ENVIRONMENT)
    (folder / "my_constants.py").write_text("GRAVITY = 9.0\n")
    return folder


@pytest.fixture(autouse=True)
def search_path(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))


@pytest.fixture
def forget(monkeypatch):
    """What makes imports and search path those of a new process in a folder."""
    searched = [each for each in sys.path if each]

    def forget(folder: Path) -> None:
        monkeypatch.chdir(folder)
        sys.path[:] = searched
        for name in ("my_env", "my_constants"):
            sys.modules.pop(name, None)

    yield forget
    forget(Path.cwd())


@pytest.mark.filterwarnings("ignore:.*would learn nothing")
def test_module_in_working_directory_trains_and_is_found_from_elsewhere(project, tmp_path, forget):
    forget(project)
    words = ("-lvl", "my_env:MyEnv", "--steps", "300", "-ntb", "--plain")
    assert main(["-p", "CartPole_PPO", *words]) == 0
    (run,) = project.glob("experiments/CartPole_PPO/MyEnv*")
    files = json.loads((run / "manifest.json").read_text())["module_folders"]
    assert {folder: sorted(names) for folder, names in files.items()} == {
        str(project): ["my_constants.py", "my_env.py"]
    }
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    forget(elsewhere)  # warnings are errors
    coach_rl.evaluate_run(run, episodes=coach_rl.EnvironmentEpisodes(1))
    coach_rl.resume_experiment(run, steps=coach_rl.EnvironmentSteps(600))
    (project / "my_constants.py").write_text("GRAVITY = 9.0  # edited\n")
    forget(elsewhere)
    with pytest.warns(CoachWarning, match="another my_constants.py"):
        coach_rl.resume_experiment(run, steps=coach_rl.EnvironmentSteps(900))


def test_recorded_folder_is_searched_only_if_own_runs_have_used_it(project):
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
def test_folder_is_searched_if_it_has_the_named_module(project, name, is_found):
    for package in ("package", "gymnasium", "coach_rl"):
        (project / package).mkdir()
        (project / package / "module.py").touch()
    let_import_named([name], project)
    assert (str(project) in sys.path) == is_found
