"""A run whose checkpoints hold no replay memory goes on, says so, and learns once it has one."""

import shutil
from collections import namedtuple
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.core.errors import CoachWarning
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.graph_managers import BasicRLGraphManager
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.memories import ReplayMemoryParameters
from coach_rl.sessions.evaluation import evaluate_run
from coach_rl.sessions.session import Audience, RunSettings, resume_experiment, run_experiment
from tests.small_runs import QUIET, experiment, state_of

Usage = namedtuple("Usage", "total used free")


def walk(steps: int, capacity: int = 1000) -> BasicRLGraphManager:
    agent = DDPGAgentParameters(
        learning=LearningParameters(batch=4, learning_starts=10),
        memory=ReplayMemoryParameters(capacity=capacity),
        update_mode="eager",
    )
    return experiment(agent, heatup=10, training=steps, progress_interval=4)


def settings(*, memories: bool) -> RunSettings:
    return replace(QUIET, checkpoints=CheckpointParameters(memories=memories))


def run(root: Path, steps: int = 40, *, memories: bool = False, **shape: int) -> Path:
    return run_experiment(
        walk(steps, **shape),
        Runtime(seed=1, device="cpu"),
        name="walk",
        root=root,
        settings=settings(memories=memories),
    ).folder.path


def resumed(folder: Path, steps: int, *, memories: bool = False) -> tuple[int, dict[str, Any]]:
    """Transitions in memory when the run goes on, and the agent's state at its end."""
    kept = []

    def on_start(manager: Any, *rest: object) -> None:
        kept.append(len(manager.graph.agents["main"].memory))

    resume_experiment(
        folder,
        steps=EnvironmentSteps(steps),
        settings=settings(memories=memories),
        audience=Audience(on_start=on_start),
    )
    (agent,) = state_of(folder)["agents"].values()
    return kept[0], agent


def test_resumed_run_learns_once_its_memory_is_filled(tmp_path: Path) -> None:
    folder = run(tmp_path)
    assert not list(folder.rglob("rows_*"))
    (before,) = state_of(folder)["agents"].values()
    with pytest.warns(CoachWarning):
        kept, agent = resumed(folder, 48)  # two short of learning_starts
    assert kept == 0
    assert agent["training_steps"] == before["training_steps"] == 30
    with pytest.warns(CoachWarning):
        _, agent = resumed(folder, 65, memories=True)
    assert agent["training_steps"] == 30 + (65 - 48 - 10)
    assert list(folder.rglob("rows_*"))
    kept, _ = resumed(folder, 70, memories=True)  # without a warning: warnings are errors
    assert kept == 65 - 48


def test_evaluate_run_without_memories_in_its_checkpoints(tmp_path: Path) -> None:
    evaluation, _ = evaluate_run(run(tmp_path), episodes=EnvironmentEpisodes(1))
    assert evaluation.environment_steps == 40


def limit_disk(monkeypatch: pytest.MonkeyPatch, free: int) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(free, 0, free))


def test_run_on_a_small_disk_begins_where_its_checkpoints_fit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit_disk(monkeypatch, 1_000)
    run(tmp_path, memories=False)
    limit_disk(monkeypatch, 100_000)
    run(tmp_path, memories=True, capacity=10)  # without a warning
