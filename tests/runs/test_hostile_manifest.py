"""A manifest is read as data: what it names is checked for what it is before it is called."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from coach_rl.agents.dqn_agent import DQNAgentParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.configuration.parameters_json import decode
from coach_rl.configuration.trust import Trust
from coach_rl.core.errors import CheckpointError, CoachError, ConfigurationError
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.graph_managers import BasicGraphParameters, BasicRLGraphManager, ScheduleParameters
from coach_rl.memories.replay_parameters import ReplayMemoryParameters
from coach_rl.sessions.evaluation import evaluate_run
from coach_rl.sessions.session import RunSettings, resume_experiment, run_experiment

SETTINGS = RunSettings(tensorboard=False, final_episodes=EnvironmentEpisodes(0))


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A short run, and its manifest as it was."""
    parameters = BasicGraphParameters(
        agent=DQNAgentParameters(
            learning=LearningParameters(batch=8, learning_starts=8),
            memory=ReplayMemoryParameters(capacity=100),
        ),
        environment=GymnasiumParameters(level="CartPole-v1"),
        schedule=ScheduleParameters(
            training=EnvironmentSteps(20), evaluation_episodes=EnvironmentEpisodes(1)
        ),
    )
    result = run_experiment(
        BasicRLGraphManager(parameters),
        Runtime(seed=3, device="cpu"),
        name="short",
        root=tmp_path_factory.mktemp("runs"),
        settings=SETTINGS,
    )
    return result.folder.path, result.folder.manifest.read_text()


def changed(original: tuple[Path, str], **changes: Any) -> Path:
    """The run, with parts of its environment's or of the whole manifest replaced.

    Whoever means harm leaves out the checksum.
    """
    folder, text = original
    manifest = json.loads(text)
    del manifest["checksum"]
    for name, value in changes.items():
        environment = manifest["parameters"]["environment"]
        part = environment if name in environment else manifest
        part[name] = value
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def go_on(folder: Path) -> None:
    resume_experiment(folder, steps=EnvironmentSteps(40), settings=SETTINGS)


def evaluate(folder: Path) -> None:
    evaluate_run(folder, episodes=EnvironmentEpisodes(1))


BOTH = pytest.mark.parametrize("use", [go_on, evaluate], ids=["resume", "evaluate"])


@BOTH
@pytest.mark.parametrize("part", ["level", "wrapper", "$type", "$enum", "parameters", "manager"])
def test_a_manifest_that_names_os_system_runs_nothing(
    original: tuple[Path, str], tmp_path: Path, use: Any, part: str
) -> None:
    told = tmp_path / "told"
    command = f"touch {told}"
    environment = json.loads(original[1])["parameters"]["environment"]
    changes = {
        "level": {"level": "os:system", "kwargs": {"command": command}},
        "wrapper": {"wrappers": [["os:system", {"command": command}]]},
        "$type": {"kwargs": {"x": {"$type": "os:system", "command": command}}},
        "$enum": {"kwargs": {"x": {"$enum": "os:system", "value": command}}},
        "parameters": {"parameters": {"$type": "os:system", "command": command}},
        "manager": {"graph_manager": "os:system"},
    }[part]
    assert set(changes) <= {*environment, *json.loads(original[1])}
    with pytest.raises(CoachError) as caught:
        use(changed(original, **changes))
    assert "os:system" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not told.exists()


@pytest.mark.parametrize(
    ("document", "message"),
    [
        (
            {"$type": "subprocess:Popen", "args": "true"},
            "'subprocess:Popen', which is not a frozen dataclass",
        ),
        ({"$type": "subprocess:CompletedProcess"}, "which is not a frozen dataclass"),
        (
            {"$type": f"{__name__}:Changeable", "number": 1},
            "Changeable', which is not a frozen dataclass",
        ),
        ({"$enum": "enum:Enum", "value": "x"}, "'enum:Enum', which is not an enum"),
        ({"$enum": "enum:Flag", "value": 1}, "'enum:Flag', which is not an enum"),
    ],
)
def test_only_frozen_dataclasses_and_enums_with_members_are_made(
    document: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        decode(document, trust=Trust(modules=frozenset({__name__, "enum", "subprocess"})))


@dataclass
class Changeable:
    """A dataclass that is not frozen, as no parameters are."""

    number: int = 0

    def __post_init__(self) -> None:
        raise AssertionError("must not be made")


@BOTH
def test_a_manifest_with_another_seed_than_its_checkpoint_is_refused(
    original: tuple[Path, str], use: Any
) -> None:
    task = json.loads(original[1])["task"] | {"seed": 4}
    with pytest.raises(
        CheckpointError, match=r"has seed 4, but .*step_20\w* was taken with seed 3"
    ):
        use(changed(original, task=task))
