"""Background evaluations equal those that the run makes itself, bit for bit."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest

import coach_rl as rl
from coach_rl.extensions.testing import assert_same_state
from coach_rl.extensions.workers.evaluation_process import EvaluationProcess
from coach_rl.runs.checkpoint import (
    POINTERS,
    list_checkpoints,
    pointed,
)
from coach_rl.sessions.session import resume_experiment, run_experiment
from coach_rl.sessions.settings import Audience, RunResult
from tests.small_runs import AtRecord, experiment, log_of, ppo, state_of

END = 640
PARAMETERS = experiment(
    ppo(64, epochs=2),
    num_envs=4,
    training=END,
    evaluation_interval=160,
    evaluation_episodes=3,
    progress_interval=160,
    checkpoints=rl.CheckpointParameters(best_of="reward_mean", best_is="smallest"),
).parameters
ORDINARY = rl.RunSettings(tensorboard=False, final_episodes=rl.EnvironmentEpisodes(1))
BACKGROUND = replace(ORDINARY, parts=(rl.BackgroundEvaluation(),))


def run(root: Path, settings: rl.RunSettings, audience: Audience | None = None) -> RunResult:
    manager, task = rl.BasicRLGraphManager(PARAMETERS), rl.Runtime(seed=2, device="cpu")
    return run_experiment(
        manager, task, name="mass", root=root, settings=settings, audience=audience
    )


def records(result: RunResult) -> list[dict[str, object]]:
    """What the log says but for time and checkpoints, in the order of environment steps."""
    found = log_of(result, without=["checkpoint"])
    return sorted(found, key=lambda each: (each["environment_steps"], each["kind"], str(each)))


@pytest.fixture(scope="module")
def ordinary(tmp_path_factory: pytest.TempPathFactory) -> RunResult:
    return run(tmp_path_factory.mktemp("ordinary"), ORDINARY)


def assert_same_run(result: RunResult, ordinary: RunResult) -> None:
    assert records(result) == records(ordinary)
    assert (result.best.value, result.best.environment_steps) == (
        ordinary.best.value,
        ordinary.best.environment_steps,
    )
    best, theirs = state_of(result, "best"), state_of(ordinary, "best")
    assert_same_state(best["agents"], theirs["agents"])
    assert_same_state(best["training"], theirs["training"])
    assert_same_state(state_of(result, "last"), state_of(ordinary, "last"))


def test_background_evaluations_equal_those_of_the_run_itself(
    tmp_path: Path, ordinary: RunResult
) -> None:
    result = run(tmp_path, BACKGROUND)
    assert_same_run(result, ordinary)
    checkpoints = result.folder.checkpoints
    kept = {pointed(checkpoints, pointer) for pointer in POINTERS}
    assert {path.name for path in list_checkpoints(checkpoints)} == kept
    assert result.best.environment_steps < END, "else this test shows little"


def test_background_evaluations_pending_at_a_stop_are_made_on_resume(
    tmp_path: Path, ordinary: RunResult
) -> None:
    stop = AtRecord(
        lambda record: record.kind == "progress" and record.environment_steps >= 320,
        lambda: os.kill(os.getpid(), signal.SIGTERM),
    )
    stopped = run(tmp_path, BACKGROUND, audience=Audience(sinks=(stop,)))
    assert stopped.signal == signal.SIGTERM
    assert not [each for each in records(stopped) if each["kind"] == "evaluation"]
    resumed = resume_experiment(stopped.folder.path, settings=ORDINARY)
    assert_same_run(resumed, ordinary)


@pytest.mark.slow
def test_evaluation_process_that_dies_is_replaced(
    tmp_path: Path, ordinary: RunResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[EvaluationProcess] = []
    submit = EvaluationProcess.submit

    def killed_at_first(self: EvaluationProcess, evaluation: object) -> None:
        if not started:
            started.append(self)
            os.kill(self._worker.pid, signal.SIGKILL)
        submit(self, evaluation)

    monkeypatch.setattr(EvaluationProcess, "submit", killed_at_first)
    with pytest.warns(rl.CoachWarning):
        result = run(tmp_path, BACKGROUND)
    assert_same_run(result, ordinary)
