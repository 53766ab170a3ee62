"""Runs recorded by other releases mean what they meant then, or are refused in one line."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import coach_rl
from coach_rl.core.errors import CoachError
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.runs.folder import RunFolder, write_manifest
from coach_rl.sessions.session import resume_experiment, run_experiment
from tests.small_runs import QUIET, preset


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
    ],
)
@pytest.mark.filterwarnings("ignore:.*was made with:coach_rl.core.errors.CoachWarning")
def test_manifest_of_another_release_that_does_not_fit_error(
    run: Path, made: Callable[[Any], object], rule: str
) -> None:
    change(run, made)
    with pytest.raises(CoachError) as caught:
        resume(run)
    message = str(caught.value)
    assert message.startswith(f"{run / 'manifest.json'} cannot be read: ")
    assert rule in message
    assert message.endswith(f"(written by coach_rl 0.1.7, this is {coach_rl.__version__})")
    assert "\n" not in message
