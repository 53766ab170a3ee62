"""Runs whose open episodes cannot be restored train, save, evaluate and resume with fresh ones."""

import random
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.agents.dqn_agent import DQNAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.core.agents import AgentParameters
from coach_rl.core.errors import CheckpointError, CoachWarning
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.graph_managers import GraphManager
from coach_rl.sessions.evaluation import evaluate_run
from coach_rl.sessions.session import Audience, RunSettings, resume_experiment, run_experiment
from tests.small_runs import experiment, manifest_of, ppo, state_of

SETTINGS = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(2))
PROBED = 600
"""More steps than the probe at the start takes."""


class Restless(gymnasium.Env[Any, Any]):
    """Python's random from the step `quiet` on; shows the number of the step."""

    observation_space = spaces.Box(0.0, 1e6, (2,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, quiet: int = 0, length: int = 40) -> None:
        self._quiet, self._length = quiet, length

    def reset(self, *, seed: int | None = None, options: Any = None) -> Any:
        super().reset(seed=seed)
        self._step = 0
        return self._seen(), {}

    def step(self, action: Any) -> Any:
        self._step += 1
        return self._seen(), 1.0, self._step == self._length, False, {}

    def _seen(self) -> Any:
        noise = random.random() if self._step > self._quiet else 0.0
        return np.array([self._step, noise], np.float32)


PPO = ppo(48)
DQN = DQNAgentParameters(
    learning=LearningParameters(batch=16, learning_starts=30), update_mode="eager"
)


def described(environment: GymnasiumParameters, agent: AgentParameters = PPO) -> GraphManager:
    return experiment(agent, environment, num_envs=2, evaluation_interval=100)


def restless(**kwargs: Any) -> GymnasiumParameters:
    return GymnasiumParameters(level=f"{__name__}:Restless", kwargs=kwargs)


def run(environment: GymnasiumParameters, root: Path, agent: AgentParameters = PPO) -> Path:
    manager, task = described(environment, agent), Runtime(seed=3, device="cpu")
    return run_experiment(manager, task, name="run", root=root, settings=SETTINGS).folder.path


def resume(folder: Path, steps: int, **more: Any) -> None:
    resume_experiment(folder, steps=EnvironmentSteps(steps), settings=SETTINGS, **more)


def resumes(folder: Path) -> list[bool]:
    return [entry["restarted_episodes"] for entry in manifest_of(folder)["resumes"]]


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        (restless(), "uses randomness besides self.np_random"),
        (
            GymnasiumParameters(
                level="CartPole-v1", wrappers=("gymnasium.wrappers:NormalizeObservation",)
            ),
            "carries something over from earlier episodes",
        ),
        (GymnasiumParameters(level="CartPole-v1", vectorization="vector"), "vector environment"),
        (GymnasiumParameters(level="CartPole-v1", resume="restart"), "resume is 'restart'"),
    ],
)
def test_unrestorable_episodes_warn_once_and_restart_on_resume(
    tmp_path: Path, environment: GymnasiumParameters, reason: str
) -> None:
    with pytest.warns(CoachWarning, match=f"cannot be saved: .*{reason}.* restarts these") as said:
        folder = run(environment, tmp_path)
    assert len(said) == 1
    with pytest.warns(CoachWarning, match=f"2 open training episodes .* restart.*{reason}"):
        resume(folder, 200)
    assert resumes(folder) == [True]
    evaluation, _ = evaluate_run(folder, episodes=EnvironmentEpisodes(2))
    assert evaluation.environment_steps >= 200


def test_restarted_runs_from_the_same_checkpoint_are_equal(tmp_path: Path) -> None:
    environment = GymnasiumParameters(level="CartPole-v1", resume="restart")
    networks = []
    for root in (tmp_path / "one", tmp_path / "other"):
        with pytest.warns(CoachWarning):
            folder = run(environment, root)
        with pytest.warns(CoachWarning):
            resume(folder, 200)
        networks.append(state_of(folder)["agents"]["main"]["network"])
    assert str(networks[0]) == str(networks[1])


def test_restarted_episodes_are_cut_in_replay_memories(tmp_path: Path) -> None:
    with pytest.warns(CoachWarning):
        folder = run(restless(length=70), tmp_path, DQN)
    with pytest.warns(CoachWarning):
        resume(folder, 300)
    entries = state_of(folder)["agents"]["main"]["memory"]["store"]["transitions"]
    for _, begin, columns in entries.parts():
        ends = np.flatnonzero(columns["/terminated"] | columns["/truncated"])
        assert (begin, ends.tolist()) == (0, [49, 119])  # cut after 50 steps, then a whole one
        assert columns["/truncated"][49]


def test_reproducible_environment_is_replayed(tmp_path: Path) -> None:
    folder, told = run(GymnasiumParameters(level="Pendulum-v1"), tmp_path), []
    resume(folder, 200, audience=Audience(on_activity=told.append))
    assert "replaying 100 steps of open episodes" in told
    assert resumes(folder) == [False]


def test_replay_that_fails_can_be_left_out(
    tmp_path: Path,
) -> None:
    environment = restless(quiet=PROBED, length=10**6)
    manager = described(environment)
    manager.create_graph(Runtime(seed=3, device="cpu"))
    for _ in manager.train_and_act(EnvironmentSteps(2 * PROBED + 100)):
        pass
    state = manager.state_dict()
    assert state["obstacle_to_restoring"] is None
    other = described(environment)
    other.create_graph(Runtime(seed=3, device="cpu"))
    with pytest.raises(CheckpointError):
        other.load_state_dict(state)
    with pytest.warns(CoachWarning):
        other.load_state_dict(state, restart_episodes=True)
    assert other.graph.tracker.lengths.tolist() == [0, 0]
    assert other.graph.clock.environment_steps == 2 * PROBED + 100
    manager.close()
    other.close()


def test_probe_leaves_global_generators_alone() -> None:
    random.seed(5)
    np.random.seed(5)  # noqa: NPY002 - the stream a preset may have seeded
    expected = random.Random(5).random(), np.random.RandomState(5).random()
    assert restless().obstacle_to_restoring() is not None
    assert (random.random(), np.random.random()) == expected  # noqa: NPY002
