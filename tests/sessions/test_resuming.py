"""Resuming with changes, of solved runs, and of runs without checkpoints."""

import json
import shutil
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path

import pytest

from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.extensions.scripts.scripted_agent import ScriptedAgentParameters
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    CheckpointParameters,
    ValidationParameters,
)
from coach_rl.runs.lock import RunInUseError, locked
from coach_rl.sessions.session import resume_experiment, run_experiment
from coach_rl.sessions.settings import RunResult, RunSettings
from tests.small_runs import experiment, lines_of, manifest_of

SETTINGS = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(1))

PARAMETERS = experiment(
    ScriptedAgentParameters(policy="still"),
    training=90,
    evaluation_interval=30,
    evaluation_episodes=1,
    until_solved=True,
    validation=ValidationParameters(reward=-1e9),
).parameters


def run(
    root: Path, parameters: BasicGraphParameters = PARAMETERS, settings: RunSettings = SETTINGS
) -> RunResult:
    return run_experiment(
        BasicRLGraphManager(parameters), name="rest", root=root, settings=settings
    )


def test_solved_run_can_be_trained_further(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert (result.ending, result.solved_at, result.environment_steps) == ("solved", 30, 30)
    summary = json.loads(result.folder.summary.read_text())
    assert (summary["ending"], summary["solved_at"]) == ("solved", 30)
    assert summary["target"] == "mean reward -1,000,000,000: reached at step 30"
    changes = {"validation": ValidationParameters(reward=1e9)}
    resumed = resume_experiment(result.folder.path, changes=changes, settings=SETTINGS)
    assert (resumed.ending, resumed.solved_at) == ("environment steps", None)


def test_run_without_checkpoints_has_a_summary(tmp_path: Path) -> None:
    none = replace(SETTINGS, checkpoints=CheckpointParameters(enabled=False))
    result = run(tmp_path, settings=none)
    assert not result.folder.checkpoints.exists()
    summary = json.loads(result.folder.summary.read_text())
    assert (summary["best_checkpoint"], summary["last_checkpoint"]) == (None, None)
    assert summary["best_evaluation"]["environment_steps"] == 30


def test_resumed_run_keeps_its_checkpoint_policy(tmp_path: Path) -> None:
    policy = CheckpointParameters(best_of="length_mean")
    result = run(tmp_path, settings=replace(SETTINGS, checkpoints=policy))
    resumed = resume_experiment(
        result.folder.path, changes={"schedule.until_solved": False}, settings=SETTINGS
    )
    assert manifest_of(resumed)["parameters"]["checkpoints"]["best_of"] == "length_mean"
    assert resumed.best is not None
    assert resumed.best.metric == "length_mean"


def test_resume_in_use_is_refused_before_a_checkpoint_is_looked_for(tmp_path: Path) -> None:
    folder = run(tmp_path).folder
    gone = folder.checkpoints / "step_5000"  # as one that the other process has just replaced
    for path in (folder.path, gone, Path(f"{folder.path}@5000")):
        with locked(folder.path), pytest.raises(RunInUseError) as refused:
            resume_experiment(path, settings=SETTINGS, last_good=path == folder.path)
        assert refused.value.exit_code == 2


def test_resume_run_saved_by_another_process_meanwhile_continues_from_the_newest_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process saves, and lets go of the run, just before this one holds it."""
    unsolved = replace(PARAMETERS, validation=ValidationParameters(reward=1e9))
    folder = run(tmp_path, unsolved).folder
    earlier = folder.path.with_name("earlier")
    shutil.copytree(folder.path, earlier)
    more = EnvironmentSteps(150)
    assert resume_experiment(folder.path, steps=more, settings=SETTINGS).environment_steps == 150
    saved = folder.path.with_name("saved")
    folder.path.rename(saved)
    earlier.rename(folder.path)

    def locked_late(path: Path) -> AbstractContextManager[None]:
        shutil.rmtree(path)
        saved.rename(path)
        return locked(path)

    monkeypatch.setattr("coach_rl.sessions.session.locked", locked_late)
    resume_experiment(folder.path, steps=EnvironmentSteps(180), settings=SETTINGS)
    assert [each["from"] for each in manifest_of(folder)["resumes"]] == ["step_90", "step_150"]
    steps = [line["environment_steps"] for line in lines_of(folder)]
    assert steps == sorted(steps)
    assert steps[-1] == 180
