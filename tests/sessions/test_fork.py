"""A fork goes on from another run's state, with what was changed, and leaves that run alone."""

import json
from pathlib import Path
from typing import Any

import pytest

from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.agents.sac_agent import SACAgentParameters
from coach_rl.cli.main import main
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.agents import AgentParameters
from coach_rl.core.errors import CheckpointError, CoachError, ConfigurationError
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.environments.toy import PointMassParameters
from coach_rl.graph_managers import (
    BasicGraphParameters,
    BasicRLGraphManager,
    GraphManager,
    ScheduleParameters,
)
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.memories.replay_parameters import ReplayMemoryParameters
from coach_rl.runs.checkpoint import find_checkpoint, list_checkpoints, read_checkpoint
from coach_rl.runs.manifest import Origin
from coach_rl.sessions.fork import fork_experiment
from coach_rl.sessions.resuming import resume_experiment
from coach_rl.sessions.runner import Audience, RunResult, RunSettings, run_experiment
from coach_rl.sessions.stop_requests import Interrupted
from coach_rl.testing import assert_same_state

STACK = load_preset(find_preset(str(Path(__file__).parent.parent / "cli" / "stack_preset.py")))
OFTEN = RunSettings(
    tensorboard=False,
    checkpoints=CheckpointParameters(every_seconds=1e-9),
    final_episodes=EnvironmentEpisodes(2),
)
"""A checkpoint whenever one can be taken."""
PPO = PPOAgentParameters(
    algorithm=PPOAlgorithmParameters(rollout=EnvironmentSteps(32), minibatch=16),
    update_mode="eager",
)
SAC = SACAgentParameters(
    memory=ReplayMemoryParameters(capacity=200),
    learning=LearningParameters(batch=8, learning_starts=20),
    update_mode="eager",
)


def described(agent: AgentParameters = PPO, level: str = "") -> GraphManager:
    return BasicRLGraphManager(
        BasicGraphParameters(
            agent=agent,
            environment=GymnasiumParameters(level=level) if level else PointMassParameters(),
            num_envs=2,
            schedule=ScheduleParameters(
                training=EnvironmentSteps(120),
                heatup=EnvironmentSteps(20),
                evaluation_interval=EnvironmentSteps(40),
                evaluation_episodes=EnvironmentEpisodes(2),
                progress_interval=EnvironmentSteps(20),
            ),
        )
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


def files(folder: Path) -> dict[Path, bytes]:
    found = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    return {path: content for path, content in found.items() if path.name != ".lock"}


def state_of(run: Path) -> Any:
    state = read_checkpoint(find_checkpoint(run / "checkpoints")).state
    for name in ("training_seconds", "wall_seconds"):
        del state["progress"][name]
    return state


def log_of(run: Path, after: int = -1) -> list[dict[str, Any]]:
    """The log without times and checkpoints, from some environment steps on."""
    lines = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    told = [line for line in lines if line["kind"] not in ("checkpoint", "progress", "phase")]
    return [
        {key: line[key] for key in line if "seconds" not in key}
        for line in told
        if line["environment_steps"] > after
    ]


def ancestry(run: Path) -> Any:
    return json.loads((run / "manifest.json").read_text())["ancestry"]


@pytest.mark.parametrize("graph_manager", [described(), described(SAC), STACK.build()])
def test_a_fork_without_changes_has_the_numbers_of_its_parent(
    tmp_path: Path, graph_manager: GraphManager
) -> None:
    run = trained(tmp_path, graph_manager).folder.path
    start = middle(run)
    before = files(run)
    fork = fork_experiment(Path(f"{run}@{start}"), name="fork", settings=OFTEN).folder.path
    assert fork.parent == tmp_path / "fork"
    assert_same_state(state_of(fork), state_of(run))
    told = log_of(fork)
    assert told
    assert told == log_of(run)[-len(told) :]
    assert (
        told[0]["environment_steps"]
        >= read_checkpoint(run / "checkpoints" / start).state["training"]["clock"][
            "environment_steps"
        ]
    )
    assert files(run) == before


def test_changes_are_followed_and_remembered_with_the_ancestors(
    parent: Path, tmp_path: Path
) -> None:
    before = files(parent)
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
    parameters = json.loads((second / "manifest.json").read_text())["parameters"]
    assert parameters["agent"]["optimizer"]["learning_rate"] == 1e-2
    told = [line for line in log_of(first) if line["kind"] == "evaluation"]
    assert [line["environment_steps"] for line in told] == [100, 110, 120]  # not at 100, 120
    one, other = ancestry(second)
    assert (one["run"], one["checkpoint"], one["changes"]) == (str(parent), middle(parent), changed)
    assert (other["run"], other["environment_steps"], other["seed"]) == (str(first), 120, 3)
    assert other["changes"] == {"schedule.training": 160, "seed": 8}
    assert files(parent) == before


def assert_differ(left: Any, right: Any) -> None:
    with pytest.raises(AssertionError):
        assert_same_state(left, right)


def test_another_seed_draws_other_numbers(parent: Path, tmp_path: Path) -> None:
    start = Path(f"{parent}@{middle(parent)}")
    forks = [
        fork_experiment(start, name=f"seed{seed}", root=tmp_path, seed=seed, settings=OFTEN)
        for seed in (3, 4, 4)
    ]
    again, other, same = (state_of(fork.folder.path) for fork in forks)
    assert_same_state(other, same)
    assert_differ(again, other)
    assert_differ(again, state_of(parent))  # seed 3 again, but its streams from their beginning


def test_a_stopped_fork_resumes_like_any_run(parent: Path, tmp_path: Path) -> None:
    class Stopper:
        def __init__(self) -> None:
            self.left = 4

        def write(self, record: object) -> None:
            self.left -= 1
            if not self.left:
                raise KeyboardInterrupt

        def flush(self) -> None: ...

        def close(self) -> None: ...

    quiet = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(2))
    start = Path(f"{parent}@{middle(parent)}")
    with pytest.raises(Interrupted):
        fork_experiment(
            start,
            name="killed",
            root=tmp_path,
            settings=quiet,
            audience=Audience(sinks=(Stopper(),)),
        )
    (killed,) = (tmp_path / "killed").iterdir()
    resume_experiment(killed, settings=quiet)
    assert_same_state(state_of(killed), state_of(parent))
    for checkpoint in list_checkpoints(killed / "checkpoints"):
        checkpoint.rename(checkpoint.with_name(f"elsewhere_{checkpoint.name}"))
    with pytest.raises(CheckpointError, match=r"has no checkpoint: .* fork the run it comes"):
        resume_experiment(killed, settings=quiet)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"num_envs": 3}, "num_envs cannot be changed in a fork"),
        (
            {"agent.network.torso.middleware": (8,)},
            r"does not fit with agent.network.torso.middleware=\(8,\)",
        ),
        ({"agent": SAC}, r"does not fit .*with agent=SACAgentParameters"),
        ({"agent.optimizer.learning_rate": -1.0}, "learning_rate must be"),
        ({"environment": GymnasiumParameters(level="CartPole-v1")}, "does not fit .*CartPole-v1"),
        ({"levell": 1}, "unknown parameter 'levell'"),
    ],
)
def test_what_does_not_fit_the_state_is_refused_by_name_and_leaves_nothing(
    parent: Path, tmp_path: Path, change: dict[str, object], message: str
) -> None:
    with pytest.raises(CoachError, match=message) as caught:
        fork_experiment(
            parent, name="fork", root=tmp_path, overrides=change, steps=EnvironmentSteps(200)
        )
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "fork").exists()


def test_a_fork_needs_a_name_and_something_to_train(
    parent: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["fork", str(parent)]) == 2
    assert "a fork needs a name of its own" in capsys.readouterr().err
    with pytest.raises(ConfigurationError, match="nothing left to train: step_120"):
        fork_experiment(parent, name="fork")
    assert main(["fork", str(parent), "--as", "fork", "-n", "3"]) == 2
    assert "`coach fork` ignores -n" in capsys.readouterr().err


def test_a_fork_of_a_preset_keeps_its_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = trained(tmp_path, STACK.build(), origin=Origin(preset=STACK)).folder.path
    words = [
        "fork",
        str(run),
        "--as",
        "fork",
        "--steps",
        "160",
        "-cp",
        "levels.0.agent.update_mode=eager",
    ]
    assert main([*words, "-ntb", "--plain"]) == 0
    assert "running:    fork on point_mass" in capsys.readouterr().out
    (fork,) = (tmp_path / "fork").iterdir()
    assert (fork / "preset.py").read_bytes() == (run / "preset.py").read_bytes()
    assert main(["resume", str(fork), "--steps", "200", "-ntb", "--plain"]) == 0
