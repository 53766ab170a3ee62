"""Runs recorded by earlier releases mean what they meant then."""

import json
from pathlib import Path

import numpy as np
import pytest

import coach_rl
from coach_rl.cli.main import main
from coach_rl.core.errors import CoachWarning

PRESET = """\
from coach_rl import *

graph_manager = BasicRLGraphManager(BasicGraphParameters(
    agent=PPOAgentParameters(
        algorithm=PPOAlgorithmParameters(rollout=EnvironmentSteps(32), epochs=1, minibatch=32),
        scale_actions=False,
        update_mode="eager",
    ),
    environment=GymnasiumParameters(level="Pendulum-v1", max_episode_steps=8),
    schedule=ScheduleParameters(training=EnvironmentSteps(32), evaluation_interval=None),
))
"""


def log(run: Path) -> list[dict[str, float]]:
    """What was learned, without times."""
    records = map(json.loads, (run / "log.jsonl").read_text().splitlines())
    return [
        {name: value for name, value in each["scalars"].items() if not name.startswith("time/")}
        for each in records
        if each["kind"] == "train"
    ]


@pytest.mark.filterwarnings("ignore::coach_rl.core.errors.CoachWarning")
def test_ppo_without_scaled_actions_loads_and_resumes_with_its_own_units(
    tmp_path: Path,
) -> None:
    """Earlier releases knew no `scale_actions`, neither in manifests nor in checkpoints."""
    preset = tmp_path / "pendulum.py"
    preset.write_text(PRESET)
    runs = []
    for name in ("now", "then"):
        words = ["-p", str(preset), "-ep", str(tmp_path), "-e", name, "--seed", "1"]
        assert main([*words, "-c", "--plain", "-ntb"]) == 0
        (run,) = (tmp_path / name).iterdir()
        runs.append(run)
    now, then = runs
    manifest = json.loads((then / "manifest.json").read_text())
    assert manifest["parameters"]["agent"].pop("scale_actions") is False
    del manifest["checksum"]
    (then / "manifest.json").write_text(json.dumps(manifest))
    seen = np.array([1.0, 0.0, 0.1], np.float32)
    with pytest.warns(CoachWarning, match="scale_actions; it takes the value of that time, False"):
        loaded = coach_rl.load(then)
    np.testing.assert_array_equal(loaded.act(seen), coach_rl.load(now).act(seen))
    for run in runs:
        assert main(["-crd", str(run), "--steps", "64", "-c", "--plain", "-ntb"]) == 0
    assert log(then) == log(now)
    assert len(log(then)) == 2
