"""A preset imports the files beside it: when it is loaded, in worker processes, after a resume."""

import hashlib
import json
import shutil
import sys
from pathlib import Path

import pytest

from coach_rl.cli.main import main
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.configuration.user_modules import changed_neighbours
from coach_rl.core.errors import ConfigurationError

DOCKING = """
import gymnasium
import numpy as np
from sizes_of_docking import SIZE


class Docking(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(-1, 1, (SIZE,), np.float32)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return self._seen(), {}

    def step(self, action):
        self.steps += 1
        return self._seen(), float(action), False, self.steps >= 10, {}

    def _seen(self):
        return self.np_random.uniform(-1, 1, SIZE).astype(np.float32)
"""
PRESET = """
from coach_rl import *

{line}


def graph_manager(vectorization: str = "sync", level: str = "docking_env:Docking"):
    algorithm = PPOAlgorithmParameters(rollout=EnvironmentSteps(64), epochs=1)
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=PPOAgentParameters(algorithm=algorithm, update_mode="eager"),
            environment=GymnasiumParameters(
                level=level, vectorization=vectorization, start_method="forkserver"
            ),
            schedule=ScheduleParameters(
                training=EnvironmentSteps(128), evaluation_interval=None
            ),
            num_envs=2,
        )
    )
"""


def forget(folder: Path) -> None:
    """Make imports and search path what they are in a new process."""
    sys.path[:] = [each for each in sys.path if not Path(each).is_relative_to(folder)]
    for name in [name for name in sys.modules if "docking" in name]:
        del sys.modules[name]


@pytest.fixture(autouse=True)
def _forgotten(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    yield
    forget(Path.cwd())


@pytest.fixture
def docking(tmp_path):
    """A folder with a preset, its environment, and a file that the environment imports."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "sizes_of_docking.py").write_text("SIZE = 3\n")
    (folder / "docking_env.py").write_text(DOCKING)
    (folder / "docking.py").write_text(PRESET.format(line="import docking_env"))
    return folder


def coach(*words: object) -> int:
    forget(Path.cwd())
    return main([str(word) for word in words])


@pytest.mark.filterwarnings("always::coach_rl.core.errors.CoachWarning")
def test_neighbours_are_found_in_training_resuming_evaluating_and_in_workers(docking, capsys):
    words = ("-p", docking / "docking.py", "--plain", "-ntb", "-c")
    assert coach(*words, "-cp", "vectorization=subprocess") == 0
    (run,) = Path("experiments/docking").iterdir()
    neighbours = json.loads((run / "manifest.json").read_text())["preset"]["neighbours"]
    assert list(neighbours) == ["docking_env.py", "sizes_of_docking.py"]
    assert coach("-crd", run, "--steps", 192, "--plain") == 0
    assert capsys.readouterr().err == ""
    (docking / "docking.py").unlink()  # of which the run has a copy
    (docking / "sizes_of_docking.py").write_text("SIZE = 3  # as before\n")
    assert coach("-crd", run, "--evaluate", 1) == 0
    changed = capsys.readouterr().err
    assert "was made with another sizes_of_docking.py; its numbers may differ" in changed
    shutil.rmtree(docking)
    assert coach("-crd", run, "--evaluate", 1) == 2
    assert "No module named 'docking_env'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("here", "elsewhere", "changed"),
    [
        ("A = 1", None, []),
        ("A = 2", None, ["helper.py"]),
        ("A = 1", "A = 2", []),
        (None, None, []),
        (None, "A = 1", []),
        (None, "A = 2", ["helper.py"]),
    ],
)
def test_changed_neighbours_of_a_file_that_is_gone_compares_the_one_imported_in_its_place(
    tmp_path, monkeypatch, here, elsewhere, changed
):
    for name, source in (("here", here), ("elsewhere", elsewhere)):
        (tmp_path / name).mkdir()
        if source is not None:
            (tmp_path / name / "helper.py").write_text(source)
    monkeypatch.syspath_prepend(str(tmp_path / "elsewhere"))
    recorded = {"helper.py": hashlib.sha256(b"A = 1").hexdigest()[:12]}
    assert changed_neighbours(tmp_path / "here", recorded) == changed


def test_class_of_a_preset_is_sent_to_workers(docking):
    preset = PRESET.format(line="from docking_env import Docking")
    preset = preset.replace('"docking_env:Docking"', 'f"{__name__}:Docking"')
    (docking / "docking.py").write_text(preset)
    words = ("describe", docking / "docking.py", "-c", "-cp")
    assert coach(*words, "vectorization=sync") == 0
    assert coach(*words, "vectorization=subprocess") == 0


@pytest.mark.filterwarnings("ignore:can't resolve package:ImportWarning")
def test_relative_import_error_says_how_to_import(docking, capsys):
    preset = PRESET.format(line="from .docking_env import Docking")
    (docking / "docking.py").write_text(preset)
    assert coach("describe", docking / "docking.py") == 2
    assert "write `import neighbour` for a file beside the preset" in capsys.readouterr().err


def test_load_preset_other_neighbour_of_the_same_name_is_refused(docking, tmp_path):
    load_preset(find_preset(str(docking / "docking.py")))
    other = tmp_path / "other"
    shutil.copytree(docking, other)
    (other / "docking.py").write_text(PRESET.format(line="import docking_env  # other"))
    with pytest.raises(ConfigurationError):
        load_preset(find_preset(str(other / "docking.py")))
    (other / "docking.py").write_text(PRESET.format(line="import json  # other"))
    load_preset(find_preset(str(other / "docking.py")))


def test_load_preset_again_searches_its_folder_first(docking, tmp_path):
    for _ in range(2):
        load_preset(find_preset(str(docking / "docking.py")))
        assert sys.path[0] == str(docking)
    assert sys.path.count(str(docking)) == 1
