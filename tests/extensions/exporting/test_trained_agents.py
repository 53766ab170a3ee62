"""Exported trained agents of the package decide as `load(...)` does."""

from pathlib import Path

import pytest

from coach_rl.runs.trained import PREFIX, trained_policies, unpacked
from tests.extensions.exporting.test_export import exported, play_both

pytest.importorskip("onnxruntime", reason="needs the extra `export`")
pytestmark = [
    pytest.mark.filterwarnings("default::coach_rl.core.errors.CoachWarning"),  # other versions
    pytest.mark.filterwarnings("default::DeprecationWarning"),  # presets import earlier modules
]
QUICK = ("AntMaze_Graph/ant_maze_u12", "CartPole_PPO")
TRAINED = [
    pytest.param(each.name, marks=() if each.name in QUICK else pytest.mark.slow)
    for each in trained_policies()
]


def test_package_has_trained_agents():
    assert len(TRAINED) >= len(QUICK)


@pytest.mark.parametrize("name", TRAINED)
def test_exported_trained_agent_decides_as_load_does(name, tmp_path):
    run = unpacked(Path(f"{PREFIX}{name}"))
    play_both(run, exported(run, tmp_path / "policy.zip"))
