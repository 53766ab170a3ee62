"""Short runs of every shipped preset give the figures that were recorded."""

import importlib.util
import json
import math
from typing import Any

import pytest
from golden_runs import RECORDED, RUNS, figures

from coach_rl.configuration.presets import shipped_presets

ABSOLUTE = 1e-6
"""Difference that passes for equal where figures are close to 0."""


def differences(found: Any, recorded: Any, tolerance: float, path: str = "") -> list[str]:
    """Where two trees of figures differ by more than rounding."""
    if isinstance(recorded, dict):
        if set(found) != set(recorded):
            return [f"{path}: other names: {sorted(set(found) ^ set(recorded))}"]
        return [
            d
            for name in recorded
            for d in differences(found[name], recorded[name], tolerance, f"{path}/{name}")
        ]
    if isinstance(recorded, list):
        if len(found) != len(recorded):
            return [f"{path}: {len(found)} entries instead of {len(recorded)}"]
        pairs = enumerate(zip(found, recorded, strict=True))
        return [
            d
            for i, (one, other) in pairs
            for d in differences(one, other, tolerance, f"{path}/{i}")
        ]
    if isinstance(recorded, float):
        same = math.isclose(found, recorded, rel_tol=tolerance, abs_tol=ABSOLUTE)
    else:
        same = found == recorded
    return [] if same else [f"{path}: {found} instead of {recorded}"]


def test_every_shipped_preset_has_a_golden_run():
    assert {run.preset for run in RUNS.values()} == set(shipped_presets())
    assert set(json.loads(RECORDED.read_text())) == set(RUNS)


@pytest.mark.parametrize("name", RUNS)
def test_figures_are_those_recorded(name, tmp_path):
    package = RUNS[name].package
    if package is not None and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
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
