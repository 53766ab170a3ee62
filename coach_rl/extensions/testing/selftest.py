"""The command that tries an installation: train, continue, load, and play the trained agents."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from coach_rl.cli.parser import Given
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import RunError
from coach_rl.core.records import Array
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.runs.checkpoint import list_checkpoints
from coach_rl.runs.trained import PREFIX, trained_policies
from coach_rl.sessions.evaluation import evaluate_run
from coach_rl.sessions.session import fork_experiment, run_experiment
from coach_rl.sessions.settings import RunSettings
from coach_rl.sessions.trained_agent import load

_PRESET = "CartPole_PPO"
_STEPS = EnvironmentSteps(2_048)
_SETTINGS = RunSettings(
    checkpoints=CheckpointParameters(every_steps=EnvironmentSteps(1_024)),
    tensorboard=False,
    final_episodes=EnvironmentEpisodes(0),
)


def selftest(_: Given) -> int:
    """Try the installation and print each result; the exit code."""
    with tempfile.TemporaryDirectory() as folder:
        for name, result in _results(Path(folder)):
            print(f"{name:<44} {result}", flush=True)
    print("everything works")
    return 0


def _results(root: Path) -> Iterator[tuple[str, str]]:
    """Each thing that is tried, and its result.

    Raises:
        RunError: A run that continues from a checkpoint learns something else.
    """
    experiment = load_preset(find_preset(_PRESET)).configure({"schedule.training": _STEPS})
    task = Runtime(seed=0, device="cpu")
    whole = run_experiment(experiment, task, name="whole", root=root, settings=_SETTINGS).folder
    yield f"train {_PRESET}", str(_STEPS)
    middle = list_checkpoints(whole.checkpoints)[0]
    fork = fork_experiment(middle, name="fork", root=root, settings=_SETTINGS).folder
    if not np.array_equal(_actions(whole.path), _actions(fork.path)):
        raise RunError(
            f"a run of {_PRESET} that continued from {middle.name} acts differently from the run "
            "that never stopped, which it must not on a CPU; report it with the output of "
            "`pip list`"
        )
    yield f"continue from {middle.name}", "the same agent"
    for policy in trained_policies():
        run = f"{PREFIX}{policy.name}"
        evaluation, _ = evaluate_run(Path(run), episodes=EnvironmentEpisodes(1))
        yield f"play {run}", f"reward {evaluation.scalars['evaluation/reward_mean']:,.5g}"


def _actions(run: Path) -> Array:
    """The actions of a run's agent on observations that are always the same."""
    observations = np.random.default_rng(0).normal(size=(1_000, 4)).astype(np.float32)
    return np.asarray(load(run).act(observations))
