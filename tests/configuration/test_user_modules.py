"""Networks of the user's own in whole runs: learned, saved, resumed, rebuilt from the manifest."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
import torch
from gymnasium import spaces
from torch import Tensor, nn

import coach_rl as rl
from coach_rl.architectures.update_modes import UnableToRun
from coach_rl.configuration.parameters_json import decode, encode
from coach_rl.configuration.trust import Trust
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.sessions import RunPart, RunPartParameters
from coach_rl.sessions.settings import RunResult
from tests.small_runs import QUIET, experiment, manifest_of


class Net(nn.Module):
    """Everything that it is given through two layers, in which it also has a constant."""

    def __init__(self, space: spaces.Dict, *action_space: spaces.Box, width: int) -> None:
        super().__init__()
        size = sum(part.shape[0] for part in (*space.values(), *action_space))
        self.register_buffer("scale", torch.rand(size))
        self.layers = nn.Sequential(
            nn.Linear(size, width), nn.LayerNorm(width), nn.ReLU(), nn.Linear(width, width)
        )

    def forward(self, observation: dict[str, Tensor], *action: Tensor) -> Tensor:
        """Features."""
        seen = torch.cat([*observation.values(), *action], dim=-1) * self.scale
        features: Tensor = self.layers(seen)
        return features


OWN = rl.ModuleParameters(module=Net, arguments={"width": 8})
OFF_POLICY: dict[str, Any] = {
    "learning": rl.LearningParameters(batch=8, learning_starts=8),
    "memory": rl.ReplayMemoryParameters(capacity=200),
}
ACTING: dict[str, Any] = {
    "actor": rl.ActorParameters(torso=OWN),
    "critic": rl.CriticParameters(torso=OWN),
}
AGENTS: dict[str, tuple[str, Any]] = {
    "PPO": (
        "Pendulum-v1",
        rl.PPOAgentParameters(
            algorithm=rl.PPOAlgorithmParameters(
                rollout=rl.EnvironmentSteps(16), minibatch=8, epochs=2
            ),
            network=rl.ActorCriticParameters(torso=OWN),
        ),
    ),
    "DQN": (
        "CartPole-v1",
        rl.DQNAgentParameters(network=rl.QNetworkParameters(torso=OWN, dueling=True), **OFF_POLICY),
    ),
    "DDPG": ("Pendulum-v1", rl.DDPGAgentParameters(**ACTING, **OFF_POLICY)),
    "TD3": ("Pendulum-v1", rl.TD3AgentParameters(**ACTING, **OFF_POLICY)),
    "SAC": ("Pendulum-v1", rl.SACAgentParameters(**ACTING, **OFF_POLICY)),
}


def described(name: str, steps: int) -> rl.BasicRLGraphManager:
    level, agent = AGENTS[name]
    return experiment(agent, rl.GymnasiumParameters(level=level), training=steps)


def run(root: Path, name: str, steps: int) -> Path:
    manager, task = described(name, steps), rl.Runtime(seed=3, device="cpu")
    return rl.run_experiment(manager, task, name=name, root=root, settings=QUIET).folder.path


def tensors_of(folder: Path) -> bytes:
    (checkpoint,) = folder.glob("checkpoints/step_60*")
    return (checkpoint / "tensors.safetensors").read_bytes()


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", AGENTS)
def test_resumed_run_with_own_modules_is_exact(tmp_path, name):
    whole = run(tmp_path / "whole", name, 60)
    part = run(tmp_path / "part", name, 37)
    rl.resume_experiment(part, steps=rl.EnvironmentSteps(60), settings=QUIET)
    assert tensors_of(part) == tensors_of(whole)


def test_own_modules_are_rebuilt_from_the_manifest():
    for name in AGENTS:
        parameters = described(name, 60).parameters
        document = json.loads(json.dumps(encode(parameters)))
        assert f"{__name__}:Net" in json.dumps(document)
        assert decode(document, trust=Trust(modules=frozenset({__name__}))) == parameters


class Reading(Net):
    """A network that reads one of its numbers, which a CUDA graph has no place for."""

    def forward(self, observation: dict[str, Tensor], *action: Tensor) -> Tensor:
        """Features."""
        features = super().forward(observation, *action)
        return features if float(features.detach().sum()) > -1e9 else -features


def _reading(update_mode: str) -> rl.BasicRLGraphManager:
    own = rl.ModuleParameters(module=Reading, arguments={"width": 8})
    agent = rl.DDPGAgentParameters(
        **OFF_POLICY,
        actor=rl.ActorParameters(torso=own),
        critic=rl.CriticParameters(torso=own),
        update_mode=update_mode,
    )
    return experiment(
        agent, rl.GymnasiumParameters(level="Pendulum-v1"), training=40, evaluation_interval=40
    )


@pytest.mark.gpu
def test_network_that_cannot_be_captured_is_eager_with_the_reason_in_the_manifest(tmp_path):
    task = rl.Runtime(device="cuda")
    with pytest.warns(rl.CoachWarning):
        run = rl.run_experiment(_reading("auto"), task, name="own", root=tmp_path, settings=QUIET)
    updates = manifest_of(run)["updates"]
    reason = updates["main/agent"]
    assert reason.startswith("eager (cannot be captured: ")
    assert "in forward, test_user_modules.py:" in reason
    rl.resume_experiment(run.folder.path, steps=rl.EnvironmentSteps(60), settings=QUIET)
    assert manifest_of(run)["updates"] == updates
    with pytest.raises(rl.ConfigurationError):
        rl.run_experiment(_reading("captured"), task, name="own", root=tmp_path, settings=QUIET)


def test_manifest_has_the_update_modes(tmp_path):
    task = rl.Runtime(device="cpu")
    run = rl.run_experiment(_reading("auto"), task, name="own", root=tmp_path, settings=QUIET)
    assert manifest_of(run)["updates"] == {"main/agent": "eager"}


def test_step_that_cannot_be_captured_changes_the_manifest(tmp_path, monkeypatch):
    """On the CPU: `auto` means captured, and capturing fails as it does on a GPU."""

    def captured(*_: object) -> Any:
        def run(*_: object) -> None:
            raise UnableToRun("cannot be captured: it reads a number (in forward, net.py:7)")

        return run

    architectures = "coach_rl.architectures"
    monkeypatch.setattr(f"{architectures}.update_engine.resolved_mode", lambda *_, **__: "captured")
    monkeypatch.setattr(f"{architectures}.update_modes.cannot_run", lambda *_: None)
    monkeypatch.setattr("coach_rl.extensions.update_modes.recorded_steps.captured", captured)
    task = rl.Runtime(device="cpu")
    with pytest.warns(rl.CoachWarning):
        run = rl.run_experiment(_reading("auto"), task, name="own", root=tmp_path, settings=QUIET)
    assert manifest_of(run)["updates"] == {
        "main/agent": "eager (cannot be captured: it reads a number (in forward, net.py:7))"
    }


@parameter_class
class OfTheScript(rl.PointMassParameters):
    """An environment as a script would define it."""


OfTheScript.__module__ = "__main__"


@parameter_class
class ElsewhereParameters(RunPartParameters):
    """A part that rebuilds the run in another process."""

    name: ClassVar[str] = "elsewhere"

    def build(self, settings: rl.RunSettings) -> RunPart:
        part = RunPart()
        part.is_rebuilt_elsewhere = True
        return part


def run_of_script(root: Path, **changes: Any) -> RunResult:
    """A run in an environment of a class that only its own program has."""
    manager = experiment(None, OfTheScript(), num_envs=4, training=64)
    settings = replace(QUIET, **changes)
    return rl.run_experiment(manager, name="script", root=root, settings=settings)
