"""A fork goes on from another run's state, with what was changed, and leaves that run alone."""

from pathlib import Path
from typing import Any

import pytest

from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.sac_agent import SACAgentParameters
from coach_rl.cli.main import main
from coach_rl.core.agents import AgentParameters
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.extensions.testing import assert_same_state
from coach_rl.graph_managers import GraphManager
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.memories.replay_parameters import ReplayMemoryParameters
from coach_rl.runs.checkpoint import list_checkpoints
from coach_rl.runs.manifest import Origin
from coach_rl.sessions.session import (
    RunResult,
    RunSettings,
    fork_experiment,
    run_experiment,
)
from tests import small_runs
from tests.small_runs import STACK, contents, experiment, manifest_of, preset

OFTEN = RunSettings(
    tensorboard=False,
    checkpoints=CheckpointParameters(every_seconds=1e-9),
    final_episodes=EnvironmentEpisodes(2),
)
"""A checkpoint whenever one can be taken."""
SAC = SACAgentParameters(
    memory=ReplayMemoryParameters(capacity=200),
    learning=LearningParameters(batch=8, learning_starts=20),
    update_mode="eager",
)


def described(agent: AgentParameters | None = None) -> GraphManager:
    return experiment(
        agent,
        num_envs=2,
        training=120,
        heatup=20,
        evaluation_interval=40,
        progress_interval=20,
    )


def trained(root: Path, graph_manager: GraphManager | None = None, **more: Any) -> RunResult:
    return run_experiment(
        graph_manager or described(),
        Runtime(seed=3, device="cpu"),
        **{"name": "parent", "root": root, "settings": OFTEN} | more,
    )


@pytest.fixture(scope="module")
def parent(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A PPO run with many checkpoints, which no test may change."""
    return trained(tmp_path_factory.mktemp("runs")).folder.path


def middle(run: Path) -> str:
    """A checkpoint after which much is still to come."""
    names = [path.name for path in list_checkpoints(run / "checkpoints")]
    return names[len(names) // 2]


def state_of(run: Path) -> Any:
    state = small_runs.state_of(run)
    for name in ("training_seconds", "wall_seconds"):
        del state["progress"][name]
    return state


def log_of(run: Path) -> list[dict[str, Any]]:
    return small_runs.log_of(run, without=["checkpoint", "progress", "phase"])


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("graph_manager", [described(), described(SAC), preset(STACK).build()])
def test_fork_without_changes_has_the_numbers_of_its_parent(
    tmp_path: Path, graph_manager: GraphManager
) -> None:
    run = trained(tmp_path, graph_manager).folder.path
    start = middle(run)
    before = contents(run)
    fork = fork_experiment(Path(f"{run}@{start}"), name="fork", settings=OFTEN).folder.path
    assert fork.parent == tmp_path / "fork"
    assert_same_state(state_of(fork), state_of(run))
    told = log_of(fork)
    assert told
    assert told == log_of(run)[-len(told) :]
    clock = small_runs.state_of(run, start)["training"]["clock"]
    assert told[0]["environment_steps"] >= clock["environment_steps"]
    assert contents(run) == before


def test_fork_changes_are_in_its_ancestry(parent: Path, tmp_path: Path) -> None:
    before = contents(parent)
    changed = {"agent.optimizer.learning_rate": 1e-2, "schedule.evaluation_interval": 10}
    first = fork_experiment(
        parent / "checkpoints" / middle(parent),
        name="first",
        root=tmp_path,
        overrides=changed,
        settings=OFTEN,
        command=("coach", "fork"),
    ).folder.path
    second = fork_experiment(
        first, name="second", steps=EnvironmentSteps(160), seed=8, settings=OFTEN
    ).folder.path
    assert_differ(state_of(first), state_of(parent))
    manifest = manifest_of(second)
    assert manifest["parameters"]["agent"]["optimizer"]["learning_rate"] == 1e-2
    told = [line for line in log_of(first) if line["kind"] == "evaluation"]
    assert [line["environment_steps"] for line in told] == [100, 110, 120]  # not at 100, 120
    one, other = manifest["ancestry"]
    assert (one["run"], one["checkpoint"], one["changes"]) == (str(parent), middle(parent), changed)
    assert (other["run"], other["environment_steps"], other["seed"]) == (str(first), 120, 3)
    assert other["changes"] == {"schedule.training": 160, "seed": 8}
    assert manifest["differences"] == {
        "agent.optimizer.learning_rate": [3e-4, 1e-2],
        "schedule.evaluation_interval": [40, 10],
        "schedule.training": [120, 160],
    }
    assert contents(parent) == before


def assert_differ(left: Any, right: Any) -> None:
    with pytest.raises(AssertionError):
        assert_same_state(left, right)


def test_fork_with_another_seed_has_other_numbers(parent: Path, tmp_path: Path) -> None:
    start = Path(f"{parent}@{middle(parent)}")
    forks = [
        fork_experiment(start, name=f"seed{seed}", root=tmp_path, seed=seed, settings=OFTEN)
        for seed in (3, 4, 4)
    ]
    again, other, same = (state_of(fork.folder.path) for fork in forks)
    assert_same_state(other, same)
    assert_differ(again, other)
    assert_differ(again, state_of(parent))  # seed 3 again, but its streams from their beginning


def test_fork_of_a_preset_keeps_its_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained(tmp_path, preset(STACK).build(), origin=Origin(preset=preset(STACK))).folder.path
    change = "levels.0.agent.update_mode=eager"
    words = ["fork", str(run), "--as", "fork", "--steps", "160", "-cp", change]
    assert main([*words, "-ntb", "--plain"]) == 0
    assert "running:    fork on point_mass" in capsys.readouterr().out
    (fork,) = (tmp_path / "fork").iterdir()
    assert (fork / "preset.py").read_bytes() == (run / "preset.py").read_bytes()
    assert main(["resume", str(fork), "--steps", "200", "-ntb", "--plain"]) == 0
