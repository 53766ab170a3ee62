"""A stop ends an evaluation whose episodes would never end."""

import os
import signal
from pathlib import Path

import pytest

from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.toy import PointMassParameters
from coach_rl.sessions.session import Audience, RunSettings, resume_experiment, run_experiment
from tests.small_runs import experiment


def stop_in_evaluation(activity: str) -> None:
    """Stop the run when it has begun an evaluation."""
    if activity.startswith("evaluating"):
        os.kill(os.getpid(), signal.SIGTERM)


@pytest.mark.parametrize(
    ("interval", "steps"), [(EnvironmentSteps(64), 64), (None, 128)], ids=["training", "final"]
)
def test_stop_in_an_evaluation_ends_it_and_the_run_resumes(
    tmp_path: Path, interval: EnvironmentSteps | None, steps: int
) -> None:
    endless = PointMassParameters(max_episode_steps=10**9)
    settings = RunSettings(final_episodes=EnvironmentEpisodes(1), tensorboard=False)
    audience = Audience(on_activity=stop_in_evaluation)
    result = run_experiment(
        experiment(evaluation_environment=endless, training=128, evaluation_interval=interval),
        Runtime(device="cpu"),
        name="endless",
        root=tmp_path,
        settings=settings,
        audience=audience,
    )
    assert (result.signal, result.summary) == (signal.SIGTERM, None)
    assert result.environment_steps == steps
    assert (result.folder.checkpoints / f"step_{steps}").exists()
    again = resume_experiment(result.folder.path, settings=settings, audience=audience)
    assert (again.signal, again.environment_steps) == (signal.SIGTERM, steps), "it is made again"
    log = (result.folder.path / "log.jsonl").read_text()
    if interval is not None:
        assert log.count('"phase": "test"') == 1, "but announced once"
