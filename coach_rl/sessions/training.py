"""An agent trained by one call: a preset for an algorithm and a task, made on the spot.

agent = train("PPO", "CartPole-v1", steps=50_000)
agent = train("SAC", "Pendulum-v1", seed=3, changes={"agent.learning.batch": 128})
agent = train("PPO", MyEnv)                         # a class that another process can import
"""

import inspect
from collections.abc import Callable, Collection, Mapping
from contextlib import closing
from pathlib import Path

from coach_rl.configuration.familiar_names import familiar_presets, familiar_settings, names_here
from coach_rl.configuration.overrides import parameter_paths
from coach_rl.configuration.own_classes import name_of_environment
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import any_task_presets
from coach_rl.core.errors import ConfigurationError, RunError, UnknownNameError, require
from coach_rl.core.runtime import Runtime
from coach_rl.core.typed_values import describe_type, describe_value
from coach_rl.runs.manifest import Origin
from coach_rl.sessions.session import DEFAULT_ROOT, run_experiment
from coach_rl.sessions.settings import Audience, RunResult
from coach_rl.sessions.trained_agent import TrainedAgent, load
from coach_rl.telemetry.console import ConsoleSink

_ARGUMENTS = {
    "-ep": "folder",
    "-e": "name",
    "-lvl": "level",
    "-n": "num_envs",
    "--device": "device",
    "-c": "device",
    "--plain": "audience",
    "--seed": "seed",
    "--steps": "steps",
}
"""Arguments of `train` that do what flags do."""


def train(
    algorithm: str,
    level: str | type | Callable[..., object],
    *,
    steps: int | None = None,
    seed: int = 0,
    num_envs: int | None = None,
    device: str = "auto",
    folder: str | Path = DEFAULT_ROOT,
    name: str | None = None,
    changes: Mapping[str, object] | None = None,
    audience: Audience | None = None,
    **others: object,
) -> TrainedAgent:
    """The trained agent of a new run.

    The run is an ordinary one, in `agent.run`: `coach` resumes, evaluates, plays and forks it. Its
    settings are those of `presets/any_task.py`; its manifest names this call.

    Args:
        algorithm: PPO, DQN, DDPG, TD3 or SAC.
        level: The task, as `-lvl` takes it: a Gymnasium id, a MuJoCo task, a goal world, a toy
            world, or `module:Class` of your own; or that class itself, or an annotated function
            that makes the environment. Its module must be one that another process can import.
        steps: Environment steps to train for; None: those of the task's preset, or 100,000.
        seed: Random seed.
        num_envs: Environments in parallel; None: those of the task's preset, or 8 for PPO and 1
            for others.
        device: auto, cpu, cuda or cuda:N.
        folder: The folder of all experiments.
        name: The experiment's name, the folder above the run's; None: that of the preset.
        changes: Other parameters, by path as `-cp` takes them, such as
            `{"agent.algorithm.clip": 0.1}`; None changes nothing.
        audience: Receivers of its records besides the run's files; None: progress on the console.
        others: Other settings of the algorithm's panel: `recurrence`.

    Returns:
        What `load` returns for the run's last checkpoint.

    Raises:
        UnknownNameError: There is no such algorithm, task or parameter.
        ConfigurationError: A value does not fit, or the algorithm does not fit the task.
        RunError: Something went wrong while training, or a signal has stopped it.
    """
    given = {**others, "steps": steps, "num_envs": num_envs}
    level = _named(level)
    panel = {"level": level, **{key: value for key, value in given.items() if value is not None}}
    for argument, value, kind in (
        ("folder", folder, str | Path),
        ("name", name, str | None),
        ("changes", changes, Mapping | None),
        ("audience", audience, Audience | None),
    ):
        require(
            isinstance(value, kind),
            f"{argument} must be {describe_type(kind)}, got {describe_value(value)}",
        )
    changes = dict(changes or {})
    for key in ("level", "environment.level", "steps", "schedule.training", "num_envs"):
        short = {"environment.level": "level", "schedule.training": "steps"}.get(key, key)
        require(key not in changes, f"'{key}' is the argument {short} of train(); give it there")
    presets = any_task_presets()
    by_lower = {each.lower(): each for each in presets}
    require(
        level.lower() not in by_lower,
        f"the algorithm comes first: coach_rl.train({level!r}, TASK, ...)",
    )
    if str(algorithm).lower() not in by_lower:
        is_text = isinstance(algorithm, str)
        name = algorithm if is_text else getattr(algorithm, "__name__", type(algorithm).__name__)
        near = familiar_presets(name) or [each for each in presets if each in name]
        raise UnknownNameError("algorithm", name, presets, near=near)
    preset = load_preset(presets[by_lower[str(algorithm).lower()]])
    for argument in (each for each in others if each not in preset.panel):
        known = preset.configure({each: panel[each] for each in panel if each in preset.panel})
        raise _unknown_argument(argument, preset.panel, known.parameters)
    graph_manager = preset.configure({**panel, **changes})
    if not graph_manager.parameters.checkpoints.enabled:
        raise ConfigurationError(
            "train() returns the agent of the last checkpoint, and checkpoints.enabled=False keeps "
            "none; leave it out, or use run_experiment()"
        )
    call: dict[str, object] = {
        "steps": steps,
        "seed": seed,
        "num_envs": num_envs,
        "device": device,
        "name": name,
    }
    call |= {"folder": str(folder), "changes": changes or None, **others}
    usual = {"seed": 0, "device": "auto", "folder": str(DEFAULT_ROOT)}
    words = [f"{key}={value!r}" for key, value in call.items() if value != usual.get(key)]
    code = f"import coach_rl; coach_rl.train({', '.join([repr(algorithm), repr(level), *words])})"
    with closing(ConsoleSink()) as console:
        console.plan(graph_manager.parameters.schedule.training)
        result = run_experiment(
            graph_manager,
            Runtime(seed=seed, device=device),
            name=name or preset.reference.name,
            root=Path(folder),
            origin=Origin(
                preset=preset, panel=preset.panel_values(panel), command=("python", "-c", code)
            ),
            audience=audience or Audience(sinks=(console,), on_activity=console.show_activity),
        )
    _require_finished(result)
    return load(result.folder.path, device=device)


def _named(level: object) -> str:
    """The name of a task: its own, or that of a class or function, as `module:Class`.

    Raises:
        ConfigurationError: Another process cannot import what was given.
    """
    if isinstance(level, str):
        return level
    if not hasattr(level, "__qualname__"):
        require(
            hasattr(level, "step"), f"level must be a name or a class, got {describe_value(level)}"
        )
        raise ConfigurationError(
            f"train() makes its environments itself, and was given one, a {type(level).__name__}"
            f"{name_of_environment(level)}"
        )
    place = f"{level.__module__}:{level.__qualname__}"
    if "<" in place or level.__module__ == "__main__":
        name = level.__qualname__.rpartition(".")[2]
        raise ConfigurationError(
            f"other processes, and a resumed run, cannot import {name} of the program that runs; "
            "define it at the top of a file of its own, and name it as module:Class, such as "
            "'my_env:MyEnv' of my_env.py"
        )
    return place


def _unknown_argument(name: str, panel: Collection[str], parameters: object) -> ConfigurationError:
    """The error about an argument that is none, with what may be meant by it.

    Args:
        name: Its name.
        panel: The arguments that are settings of the algorithm.
        parameters: The experiment's, which `changes` changes by their paths.
    """
    paths = [path for path, _, _ in parameter_paths(parameters)]
    found = [_ARGUMENTS[flag] for flag in names_here("flags").get(name, ()) if flag in _ARGUMENTS]
    meant = found or familiar_settings(name, [*panel, *paths])
    meant = meant or [path for path in paths if f".{path}".endswith(f".{name}")]
    arguments = {*inspect.signature(train).parameters, *panel} - {"others"}
    shown = [
        f"{each}=..." if each in arguments else f"changes={{'{each}': ...}}"
        for each in dict.fromkeys(meant)
    ]
    return UnknownNameError("argument", name, arguments, near=shown, where="of train()")


def _require_finished(result: RunResult) -> None:
    """Raise an error where a signal has stopped a run, or its end could not be saved."""
    path = result.folder.path
    if result.signal is not None:
        raise RunError(
            f"training was stopped by a signal before its end; resume it with: coach -crd {path}"
        )
    if result.unsaved is not None:
        raise RunError(
            f"the end of the run {path} is not saved: cannot write {result.unsaved}; finish it "
            f"with: coach -crd {path}"
        )
