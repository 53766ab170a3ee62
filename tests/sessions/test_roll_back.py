"""A run that diverges goes back to its last checkpoint and on with other random numbers."""

import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coach_rl.core.errors import CoachWarning
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.extensions.testing import assert_same_state
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.sessions.session import RunResult, RunSettings, resume_experiment, run_experiment
from tests.small_runs import QUIET, log_of, preset, state_of

SETTINGS = RunSettings(
    tensorboard=False,
    final_episodes=EnvironmentEpisodes(1),
    checkpoints=CheckpointParameters(every_steps=EnvironmentSteps(10)),
)


def run(root: Path, settings: RunSettings = SETTINGS, **panel: Any) -> RunResult:
    return run_experiment(
        preset().build(panel), Runtime(seed=3), name="w", root=root, settings=settings
    )


def test_diverged_run_is_rolled_back(tmp_path: Path) -> None:
    usual = run(tmp_path)
    with pytest.warns(CoachWarning):
        result = run(tmp_path, diverge_at=75, response="roll_back")
    assert result.environment_steps == 100
    assert result.incidents == ("roll-backs, after the run had diverged: 1",)
    history, other = (state_of(each)["agents"]["main"]["history"] for each in (result, usual))
    assert np.array_equal(history[:70], other[:70])
    assert not np.isclose(history[70:], other[70:]).any()
    lines = log_of(result)
    steps = [line["environment_steps"] for line in lines]
    assert steps == sorted(steps)
    (told,) = [line for line in lines if line["kind"] == "roll_back"]
    assert told["environment_steps"] == 70
    assert told["scalars"] == {
        "divergence/environment_steps": 75.0,
        "divergence/roll_backs": 1,
    }


def test_rolled_back_run_is_resumed_exactly(tmp_path: Path) -> None:
    with pytest.warns(CoachWarning):
        whole = run(tmp_path / "whole", diverge_at=75, response="roll_back")
    with pytest.warns(CoachWarning):
        part = run(tmp_path / "part", diverge_at=75, response="roll_back", signal_at=85)
    assert part.signal == signal.SIGTERM
    resumed = resume_experiment(part.folder.path, settings=SETTINGS)
    assert_same_state(state_of(whole), state_of(resumed))
    assert log_of(whole) == log_of(resumed)


def test_run_with_roll_back_has_a_first_checkpoint(tmp_path: Path) -> None:
    with pytest.warns(CoachWarning):
        assert run(tmp_path, QUIET, diverge_at=15, response="roll_back").environment_steps == 100
