"""A run that diverges goes back to its last checkpoint and on with other random numbers."""

import json
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import CoachWarning, ConfigurationError, DivergedError
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.runs.checkpoint import find_checkpoint, read_checkpoint
from coach_rl.sessions.resuming import resume_experiment
from coach_rl.sessions.runner import RunResult, RunSettings, run_experiment
from coach_rl.testing import assert_same_state

PRESET = load_preset(find_preset(str(Path(__file__).parent.parent / "fake_preset.py")))
SETTINGS = RunSettings(
    tensorboard=False,
    final_episodes=EnvironmentEpisodes(1),
    checkpoints=CheckpointParameters(every_steps=EnvironmentSteps(10)),
)
ROLLED_BACK = r"has diverged\. Rolled back from 75 environment steps to step_70, .* \(1 of 3 times"


def run(root: Path, settings: RunSettings = SETTINGS, **panel: Any) -> RunResult:
    manager = PRESET.build(panel)
    return run_experiment(manager, Runtime(seed=3), name="w", root=root, settings=settings)


def state_of(result: RunResult) -> Any:
    return read_checkpoint(find_checkpoint(result.folder.checkpoints)).state


def log_of(result: RunResult) -> list[dict[str, Any]]:
    lines = map(json.loads, (result.folder.path / "log.jsonl").read_text().splitlines())
    kept = [line for line in lines if line["kind"] != "checkpoint"]
    return [{key: line[key] for key in line if "second" not in key} for line in kept]


def test_a_run_that_diverges_is_rolled_back_and_says_so(tmp_path: Path) -> None:
    usual = run(tmp_path)
    with pytest.warns(CoachWarning, match=ROLLED_BACK):
        result = run(tmp_path, diverge_at=75, response="roll_back")
    assert result.environment_steps == 100
    assert result.incidents == ("roll-backs, after the run had diverged: 1",)
    history, other = (state_of(each)["history"] for each in (result, usual))
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


def test_a_rolled_back_run_is_resumed_exactly(tmp_path: Path) -> None:
    with pytest.warns(CoachWarning, match=ROLLED_BACK):
        whole = run(tmp_path / "whole", diverge_at=75, response="roll_back")
    with pytest.warns(CoachWarning, match=ROLLED_BACK):
        part = run(tmp_path / "part", diverge_at=75, response="roll_back", signal_at=85)
    assert part.signal == signal.SIGTERM
    resumed = resume_experiment(part.folder.path, settings=SETTINGS)
    assert_same_state(state_of(whole), state_of(resumed))
    assert log_of(whole) == log_of(resumed)


def test_a_run_stops_where_that_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(DivergedError, match=r"has diverged\. .* checkpoint, .*step_70, was"):
        run(tmp_path, diverge_at=75)


def test_a_run_that_rolls_back_has_a_checkpoint_from_its_first_moment(tmp_path: Path) -> None:
    rare = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(0))
    with pytest.warns(CoachWarning, match="to step_10, with new random numbers"):
        assert run(tmp_path, rare, diverge_at=15, response="roll_back").environment_steps == 100


def test_rolling_back_needs_the_memories_in_checkpoints(tmp_path: Path) -> None:
    without = RunSettings(tensorboard=False, checkpoints=CheckpointParameters(memories=False))
    with pytest.raises(ConfigurationError, match=r"divergence\.response='roll_back' needs"):
        run(tmp_path, without, response="roll_back")
