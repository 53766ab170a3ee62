"""Runs recorded by other releases mean what they meant then, or are refused in one line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coach_rl
from coach_rl.cli.main import main
from coach_rl.configuration import parameters_json
from coach_rl.core.errors import CoachError, CoachWarning
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.runs.folder import RunFolder, write_manifest
from coach_rl.sessions.session import resume_experiment, run_experiment
from tests.small_runs import QUIET, log_of, preset

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


@pytest.mark.filterwarnings("ignore::coach_rl.core.errors.CoachWarning")
def test_ppo_without_scaled_actions_loads_and_resumes_with_its_own_units(
    tmp_path: Path,
) -> None:
    """Earlier releases knew no `scale_actions`, neither in manifests nor in checkpoints."""
    file = tmp_path / "pendulum.py"
    file.write_text(PRESET)
    runs = []
    for name in ("now", "then"):
        words = ["-p", str(file), "-ep", str(tmp_path), "-e", name, "--seed", "1"]
        assert main([*words, "-c", "--plain", "-ntb"]) == 0
        (run,) = (tmp_path / name).iterdir()
        runs.append(run)
    now, then = runs
    manifest = json.loads((then / "manifest.json").read_text())
    assert manifest["parameters"]["agent"].pop("scale_actions") is False
    del manifest["checksum"]
    (then / "manifest.json").write_text(json.dumps(manifest))
    seen = np.array([1.0, 0.0, 0.1], np.float32)
    with pytest.warns(CoachWarning):
        loaded = coach_rl.load(then)
    np.testing.assert_array_equal(loaded.act(seen), coach_rl.load(now).act(seen))
    for run in runs:
        assert main(["-crd", str(run), "--steps", "64", "-c", "--plain", "-ntb"]) == 0
    learned = [[line for line in log_of(run) if line["kind"] == "train"] for run in runs]
    assert learned[0] == learned[1]
    assert len(learned[0]) == 2


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root, manager = tmp_path_factory.mktemp("runs"), preset().build({"steps": 20})
    return run_experiment(manager, name="walk", root=root, settings=QUIET).folder.path


@pytest.fixture
def run(original: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "run"))


def change(run: Path, made: Callable[[Any], object]) -> None:
    """Change a run's manifest as if another release had written it."""
    manifest = json.loads((run / "manifest.json").read_text())
    manifest["versions"]["coach-rl"] = "0.1.7"
    made(manifest["parameters"])
    write_manifest(RunFolder(run), manifest)


def resume(run: Path) -> None:
    resume_experiment(run, steps=EnvironmentSteps(40), settings=QUIET)


@pytest.mark.parametrize(
    ("made", "rule"),
    [
        (lambda of: of["agent"].update(width=3), "unknown field 'width' of WalkAgent"),
        (
            lambda of: of["schedule"].update({"$type": "coach_rl.core.steps:Gone"}),
            "unknown name 'Gone' in module 'coach_rl.core.steps'",
        ),
        (
            lambda of: of["schedule"].update({"$type": "coach_rl.core.gone:Gone"}),
            "needs the module 'coach_rl.core.gone'",
        ),
        (
            lambda of: of["agent"].update(noise=0.5),
            "sets noise to 0.5, but WalkAgent has lost",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:.*was made with:coach_rl.core.errors.CoachWarning")
def test_manifest_of_another_release_that_does_not_fit_error(
    run: Path, made: Callable[[Any], object], rule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parameters_json, "REMOVED_FIELDS", {"WalkAgent": {"noise": 0.0}})
    change(run, made)
    with pytest.raises(CoachError) as caught:
        resume(run)
    message = str(caught.value)
    assert message.startswith(f"{run / 'manifest.json'} cannot be read: ")
    assert rule in message
    assert message.endswith(f"(written by coach_rl 0.1.7, this is {coach_rl.__version__})")
    assert "\n" not in message


@pytest.mark.filterwarnings("ignore:.*was made with:coach_rl.core.errors.CoachWarning")
def test_removed_field_at_its_former_default_is_dropped(
    run: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parameters_json, "REMOVED_FIELDS", {"WalkAgent": {"noise": 0.0}})
    change(run, lambda of: of["agent"].update(noise=0.0))
    resume(run)
    manifest = json.loads((run / "manifest.json").read_text())
    assert "noise" not in manifest["parameters"]["agent"]
