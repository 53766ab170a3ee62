"""Resuming with changes, of solved runs, and of runs without checkpoints."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from coach_rl.agents.scripted_agent import ScriptedAgentParameters
from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.toy import PointMassParameters
from coach_rl.experiment.resuming import resume_experiment
from coach_rl.experiment.run_settings import RunResult, RunSettings
from coach_rl.experiment.runner import run_experiment
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    CheckpointParameters,
    ScheduleParameters,
    ValidationParameters,
)

SETTINGS = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(1))

PARAMETERS = BasicGraphParameters(
    agent=ScriptedAgentParameters(policy="still"),
    environment=PointMassParameters(),
    schedule=ScheduleParameters(
        training=EnvironmentSteps(90),
        evaluation_interval=EnvironmentSteps(30),
        evaluation_episodes=EnvironmentEpisodes(1),
        until_solved=True,
    ),
    validation=ValidationParameters(reward=-1e9),
)


def run(
    root: Path, parameters: BasicGraphParameters = PARAMETERS, settings: RunSettings = SETTINGS
) -> RunResult:
    return run_experiment(
        BasicRLGraphManager(parameters), name="rest", root=root, settings=settings
    )


def test_a_solved_run_says_so_and_trains_on_only_where_asked_to(tmp_path: Path) -> None:
    result = run(tmp_path)
    assert (result.ending, result.solved_at, result.environment_steps) == ("solved", 30, 30)
    summary = json.loads(result.folder.summary.read_text())
    assert (summary["ending"], summary["solved_at"]) == ("solved", 30)
    assert summary["target"] == "mean reward -1,000,000,000: reached at step 30"
    with pytest.raises(ConfigurationError, match=r"at environment step 30; .* --until_solved off"):
        resume_experiment(result.folder.path, settings=SETTINGS)
    changes = {"validation": ValidationParameters(reward=1e9)}
    resumed = resume_experiment(result.folder.path, changes=changes, settings=SETTINGS)
    assert (resumed.ending, resumed.solved_at) == ("environment steps", None)


def test_a_resumed_run_keeps_its_other_parameters(tmp_path: Path) -> None:
    result = run(tmp_path)
    with pytest.raises(ConfigurationError, match="keeps its 'num_envs'; what may change: "):
        resume_experiment(result.folder.path, changes={"num_envs": 2}, settings=SETTINGS)


def test_a_run_without_checkpoints_is_summarised_but_not_resumed(tmp_path: Path) -> None:
    none = replace(SETTINGS, checkpoints=CheckpointParameters(enabled=False))
    result = run(tmp_path, settings=none)
    assert not result.folder.checkpoints.exists()
    summary = json.loads(result.folder.summary.read_text())
    assert (summary["best_checkpoint"], summary["last_checkpoint"]) == (None, None)
    assert summary["best_evaluation"]["environment_steps"] == 30
    with pytest.raises(CheckpointError, match="keeps no checkpoints"):
        resume_experiment(result.folder.path, settings=SETTINGS)


def test_a_policy_given_for_a_run_is_its_own_when_it_is_resumed(tmp_path: Path) -> None:
    policy = CheckpointParameters(best_of="length_mean")
    result = run(tmp_path, settings=replace(SETTINGS, checkpoints=policy))
    resumed = resume_experiment(
        result.folder.path, changes={"schedule.until_solved": False}, settings=SETTINGS
    )
    manifest = json.loads(resumed.folder.manifest.read_text())
    assert manifest["parameters"]["checkpoints"]["best_of"] == "length_mean"
    assert resumed.best is not None
    assert resumed.best.metric == "length_mean"
