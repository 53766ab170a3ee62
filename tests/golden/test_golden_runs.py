"""Short runs of every shipped preset give the figures that were recorded."""

import json

import pytest
from golden_runs import RECORDED, RUNS, differences, figures, is_installed

from coach_rl.configuration.presets import shipped_presets

pytestmark = pytest.mark.golden


def test_every_shipped_preset_has_a_golden_run():
    assert {run.preset for run in RUNS.values()} == set(shipped_presets())
    assert set(json.loads(RECORDED.read_text())) == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_figures_are_those_recorded(name, tmp_path):
    if not is_installed(RUNS[name]):
        pytest.skip(f"{RUNS[name].package} is not installed")
    found = figures(RUNS[name], tmp_path)
    recorded = json.loads(RECORDED.read_text())[name]
    assert any(each["kind"] == "train" for each in recorded["log"])
    moved = differences(found, recorded, RUNS[name].tolerance)
    assert not moved, (
        f"{len(moved)} figures moved, e.g. {moved[:3]}; if that is meant, record the run again: "
        f"python tests/golden/golden_runs.py '{name}', and say why in CHANGELOG.md"
    )


@pytest.mark.parametrize("change", [("scalars", 1.0001), ("networks", 1.0001)])
def test_a_moved_figure_is_noticed(change):
    recorded = json.loads(RECORDED.read_text())["CartPole_PPO"]
    moved = json.loads(RECORDED.read_text())["CartPole_PPO"]
    where, factor = change
    if where == "networks":
        moved["networks"] = {n: [v * factor for v in each] for n, each in moved["networks"].items()}
    else:
        train = next(each for each in moved["log"] if each["kind"] == "train")
        train["scalars"]["train/value_loss"] *= factor
    assert differences(moved, recorded, 1e-5)
    assert not differences(recorded, recorded, 1e-5)
