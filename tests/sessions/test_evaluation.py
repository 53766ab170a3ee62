"""Evaluating agents apart from the environments they were trained in."""

import csv
import io
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from tensorboard.backend.event_processing.event_accumulator import (  # type: ignore[import-untyped]
    EventAccumulator,
)

from coach_rl.core.errors import CoachWarning, ConfigurationError
from coach_rl.core.interfaces import EnvironmentParameters
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.toy import PointMassParameters
from coach_rl.graph_managers import GraphManager
from coach_rl.graph_managers import evaluations as evaluation_schedule
from coach_rl.runs.manifest import Origin
from coach_rl.sessions.evaluation import evaluate_run, evaluate_untrained
from coach_rl.sessions.session import (
    Audience,
    RunResult,
    RunSettings,
    resume_experiment,
    run_experiment,
)
from coach_rl.telemetry import ConsoleSink
from tests.small_runs import STACK, experiment, lines_of, manifest_of, preset

EPISODES = EnvironmentEpisodes(3)
TASK = Runtime(seed=3, device="cpu")

RESTLESS = """
import gymnasium, numpy as np
from gymnasium import spaces

class Restless(gymnasium.Env):
    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._step = 0
        return np.random.uniform(-1, 1, 1).astype(np.float32), {}  # not self.np_random

    def step(self, action):
        self._step += 1
        seen = np.random.uniform(-1, 1, 1).astype(np.float32)
        return seen, 1.0, self._step == 40, False, {}
"""
GONE = """
from dataclasses import dataclass
from coach_rl.environments.toy import PointMassParameters

@dataclass(frozen=True, kw_only=True)
class GoneParameters(PointMassParameters):
    pass
"""
PRESET_OF_GONE = """
import gone
from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.environments.toy import PointMassParameters
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers import BasicGraphParameters, BasicRLGraphManager, ScheduleParameters

{definitions}

def graph_manager():
    return {manager}(
        BasicGraphParameters(
            agent=PPOAgentParameters(
                algorithm=PPOAlgorithmParameters(rollout=EnvironmentSteps(32)), update_mode="eager"
            ),
            environment=gone.GoneParameters(),
            evaluation_environment=PointMassParameters(),
            schedule=ScheduleParameters(training=EnvironmentSteps(60), evaluation_interval=None),
        )
    )
"""


def described(
    environment: EnvironmentParameters, tested_in: EnvironmentParameters | None = None
) -> GraphManager:
    return experiment(
        environment=environment,
        evaluation_environment=tested_in,
        num_envs=2,
        evaluation_interval=50,
    )


def run(graph_manager: GraphManager, root: Path, **more: Any) -> RunResult:
    settings = RunSettings(tensorboard=False, final_episodes=EPISODES)
    return run_experiment(
        graph_manager, TASK, **{"name": "run", "root": root / "runs", "settings": settings} | more
    )


@pytest.fixture
def folder_of_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path; its modules are forgotten afterwards."""
    modules = tmp_path / "modules"
    modules.mkdir()
    (modules / "restless.py").write_text(RESTLESS)
    (modules / "gone.py").write_text(GONE)
    monkeypatch.syspath_prepend(str(modules))
    yield modules
    forget()


def forget() -> None:
    for name in ("restless", "gone"):
        sys.modules.pop(name, None)


def uninstall(modules: Path) -> None:
    (modules / "gone.py").unlink()
    forget()
    with pytest.raises(ModuleNotFoundError):
        __import__("gone")


def test_evaluate_run_needs_no_replay(tmp_path: Path, folder_of_modules: Path) -> None:
    with pytest.warns(CoachWarning):
        result = run(described(GymnasiumParameters(level="restless:Restless")), tmp_path)
    evaluation, _ = evaluate_run(result.folder.path, episodes=EPISODES)
    assert evaluation.scalars["evaluation/reward_mean"] == 40.0


def test_evaluate_run_needs_no_training_environment(
    tmp_path: Path, folder_of_modules: Path
) -> None:
    import gone  # type: ignore[import-not-found]  # written above

    result = run(described(gone.GoneParameters(), PointMassParameters()), tmp_path)
    assert result.summary is not None
    uninstall(folder_of_modules)
    with pytest.raises(ConfigurationError):
        resume_experiment(result.folder.path, steps=EnvironmentSteps(200))
    evaluation, _ = evaluate_run(result.folder.path, episodes=EPISODES)
    assert evaluation.scalars == result.summary.evaluation.scalars


@pytest.mark.parametrize("of_preset", [False, True])
def test_evaluate_run_needs_its_preset_only_if_it_is_named(
    tmp_path: Path, folder_of_modules: Path, of_preset: bool
) -> None:
    file = tmp_path / "preset.py"
    named = ("class Own(BasicRLGraphManager):\n    pass\n", "Own")
    definitions, manager = named if of_preset else ("", "BasicRLGraphManager")
    file.write_text(PRESET_OF_GONE.format(definitions=definitions, manager=manager))
    own = preset(file)
    result = run(own.build(), tmp_path, origin=Origin(preset=own))
    assert result.summary is not None
    uninstall(folder_of_modules)
    del sys.modules[own.module_name]
    if of_preset:
        with pytest.raises(ConfigurationError):
            evaluate_run(result.folder.path, episodes=EPISODES)
        return
    with pytest.warns(CoachWarning):
        evaluation, _ = evaluate_run(result.folder.path, episodes=EPISODES)
    assert evaluation.scalars == result.summary.evaluation.scalars


VECTOR = GymnasiumParameters(level="CartPole-v1", vectorization="vector")
SINGLE = GymnasiumParameters(level="CartPole-v1")


def test_vector_environment_trains_and_evaluates() -> None:
    with described(VECTOR) as manager:
        manager.create_graph(TASK)
        kinds = [record.kind for record in manager.improve()]
    assert kinds.count("evaluation") == 2
    evaluation = evaluate_untrained(described(VECTOR), TASK, episodes=EPISODES)
    assert evaluation.scalars["evaluation/episodes"] == 3


def test_evaluate_run_in_a_vector_environment(tmp_path: Path) -> None:
    result = run(described(SINGLE, VECTOR), tmp_path)
    evaluation, _ = evaluate_run(result.folder.path, episodes=EPISODES)
    assert evaluation.scalars["evaluation/episodes"] == 3


def table(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_final_evaluation_is_in_all_sinks(tmp_path: Path) -> None:
    output = io.StringIO()
    console = ConsoleSink(console=Console(file=output, width=200), plain=True)
    result = run(
        preset(STACK).build(),
        tmp_path,
        settings=RunSettings(final_episodes=EPISODES),
        audience=Audience(sinks=(console,)),
    )
    folder, summary = result.folder.path, json.loads(result.folder.summary.read_text())
    assert result.summary is not None
    final = result.summary.evaluation
    assert [level.level for level in final.levels] == ["top", "low"]
    reward = final.scalars["evaluation/reward_mean"]
    share = final.levels[1].scalars["evaluation_level/goal_share"]
    sub_episodes = final.levels[1].scalars["evaluation_level/sub_episodes"]

    *_, of_level, of_all = lines_of(folder)
    assert (of_level["kind"], of_level["level"], of_level["phase"]) == ("level", "low", "test")
    assert of_level["scalars"]["final_evaluation_level/goal_share"] == share
    assert of_all["kind"] == "final_evaluation"
    assert of_all["scalars"]["final_evaluation/reward_mean"] == reward
    assert len(of_all["arrays"]["episode/reward"]) == 3

    assert summary["levels"]["low"]["sub_episodes"] == sub_episodes > 0
    (row,) = table(folder / "final_evaluation.csv")
    assert float(row["final_evaluation/reward_mean"]) == reward
    assert len(table(folder / "evaluations.csv")) == 2  # those while training, as before
    assert float(table(folder / "low.csv")[-1]["final_evaluation_level/goal_share"]) == share

    events = EventAccumulator(str(folder)).Reload()
    for name, value in (
        ("final_evaluation/reward_mean", reward),
        ("low/final_evaluation_level/goal_share", share),
    ):
        (event,) = events.Scalars(name)
        assert event.value == pytest.approx(value)
        assert event.step == result.environment_steps
    assert "final evaluation " in output.getvalue().splitlines()[-1]

    again, file = evaluate_run(folder, episodes=EPISODES)
    assert again.levels[1].scalars == final.levels[1].scalars
    document = json.loads(file.read_text())
    assert document["levels"]["low"]["evaluation_level/goal_share"] == share


def test_resumed_run_repeats_its_final_evaluation(tmp_path: Path) -> None:
    result = run(described(PointMassParameters()), tmp_path)
    resumed = resume_experiment(
        result.folder.path,
        steps=EnvironmentSteps(150),
        settings=RunSettings(tensorboard=False, final_episodes=EPISODES),
    )
    assert resumed.summary is not None
    (line,) = [line for line in lines_of(result.folder.path) if line["kind"] == "final_evaluation"]
    assert line["environment_steps"] == 150
    assert len(table(result.folder.path / "final_evaluation.csv")) == 1


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of PPO on CartPole."""
    return run(described(SINGLE), tmp_path_factory.mktemp("trained")).folder.path


def test_evaluate_run_in_another_environment(trained: Path) -> None:
    overrides = {"environment.level": "CartPole-v0", "environment.max_episode_steps": 7}
    evaluation, file = evaluate_run(trained, episodes=EPISODES, overrides=overrides, num_envs=2)
    assert evaluation.scalars["evaluation/length_mean"] <= 7
    assert file is not None
    document = json.loads(file.read_text())
    assert (document["level"], document["overrides"]) == ("CartPole-v0", overrides)
    assert manifest_of(trained)["level"] == "CartPole-v1"


def test_evaluate_run_changes_its_evaluation_environment(tmp_path: Path) -> None:
    folder = run(described(SINGLE, VECTOR), tmp_path).folder.path
    for name in ("environment", "evaluation_environment"):
        changed = {f"{name}.level": "CartPole-v0", f"{name}.vectorization": "sync"}
        evaluation, _ = evaluate_run(folder, episodes=EPISODES, overrides=changed)
        assert evaluation.scalars["evaluation/episodes"] == 3


def test_evaluate_run_sampling_learns_nothing(trained: Path) -> None:
    before = {path: path.read_bytes() for path in (trained / "checkpoints").rglob("*.*")}
    greedy, _ = evaluate_run(trained, episodes=EPISODES)
    sampled, file = evaluate_run(trained, episodes=EPISODES, sampling=True)
    again, _ = evaluate_run(trained, episodes=EPISODES, sampling=True)
    assert sampled.scalars == again.scalars
    assert not np.array_equal(sampled.arrays["episode/reward"], greedy.arrays["episode/reward"])
    assert file is not None
    assert json.loads(file.read_text())["sampling"] is True
    assert {path: path.read_bytes() for path in before} == before


def test_evaluate_run_rows_grow_with_many_episodes(
    trained: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: list[int] = []
    play = evaluation_schedule.play

    def noting(stack: Any, *arguments: Any, **more: Any) -> Any:
        rows.append(stack.num_envs)
        return play(stack, *arguments, **more)

    monkeypatch.setattr(evaluation_schedule, "play", noting)
    for episodes, num_envs in ((20, None), (21, None), (40, 5)):
        evaluate_run(trained, episodes=EnvironmentEpisodes(episodes), num_envs=num_envs)
    assert rows == [2, 16, 5]
