"""Forking a run: a new run that starts from another one's state, with changed parameters.

    fork_experiment(
        Path("experiments/cartpole/...@20000"),
        name="cartpole_slower",
        overrides={"agent.optimizer.learning_rate": 1e-4},
    )

The run it comes from, its parent, stays as it is.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from coach_rl.configuration.module_folders import imported_folders, let_import_named
from coach_rl.configuration.overrides import apply_overrides, overrides_json, said
from coach_rl.configuration.spaces_json import spaces_to_json
from coach_rl.configuration.strict_json import Json, read_text
from coach_rl.configuration.trust import code_in_parameters, remember_own_code
from coach_rl.core.errors import CheckpointError, ConfigurationError, UnknownNameError
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.runs.checkpoint import Checkpoint, steps_of
from coach_rl.runs.creation import check_name, create_run_folder
from coach_rl.runs.keeper import CheckpointKeeper
from coach_rl.runs.lock import locked
from coach_rl.runs.manifest import Origin, make_manifest
from coach_rl.sessions.evaluation import live_graph
from coach_rl.sessions.live_run import LiveRun
from coach_rl.sessions.new_streams import with_new_streams
from coach_rl.sessions.opened_run import (
    OpenedRun,
    fitting,
    open_run,
    warn_of_missing_memories,
)
from coach_rl.sessions.problems import require_startable
from coach_rl.sessions.resume_conditions import require_work
from coach_rl.sessions.runner import check_room, policy_of, seen_by, videos_of
from coach_rl.sessions.settings import Audience, RunResult, RunSettings
from coach_rl.sessions.stop_requests import StopRequests


def fork_experiment(
    run: Path,
    *,
    name: str,
    overrides: Mapping[str, object] | None = None,
    steps: EnvironmentSteps | None = None,
    seed: int | None = None,
    root: Path | None = None,
    device: str | None = None,
    threads: int | None = None,
    last_good: bool = False,
    restart_episodes: bool = False,
    trust: Collection[str] = (),
    command: Sequence[str] = (),
    settings: RunSettings | None = None,
    audience: Audience | None = None,
) -> RunResult:
    """Start a new run from the state of another one, and train it.

    Without changes its numbers are those that the parent continues with. Its manifest lists its
    ancestors, and what each fork changed. `best` is the best since the fork.

    Args:
        run: The parent: a run's folder (its last checkpoint), one of its checkpoints, or
            `RUN@STEP`.
        name: The new experiment's name, the folder above the run's.
        overrides: Changed parameters by dotted path; whatever leaves the state loadable.
        steps: Environment steps to train to, in all; None keeps the parent's plan.
        seed: A new seed: exploration and batches are drawn from new streams, environments go on
            with theirs. None keeps the parent's seed and streams.
        root: The folder of all experiments; None takes the parent's.
        device: Where to run; None keeps the parent's.
        threads: Threads of one tensor operation on the CPU; None keeps the parent's.
        last_good: Whether to take the parent's newest checkpoint that can be read.
        restart_episodes: Whether to begin the open training episodes anew.
        trust: Modules whose code the parent may use, besides those of the user's own runs.
        command: The command line, for the manifest.
        settings: How to run it; None takes the defaults.
        audience: Receivers of its records besides the run's files; None for none.

    Raises:
        ConfigurationError: There is no such run, a parameter does not exist or fit, or nothing is
            left to train.
        CheckpointError: A file of the parent is damaged, or its state does not fit the changes.
    """
    settings, audience = settings or RunSettings(), audience or Audience()
    check_name(name)
    opened = open_run(run, device=device, threads=threads, last_good=last_good, trust=trust)
    checkpoint = opened.checkpoint
    if checkpoint is None:
        raise CheckpointError(f"the run {opened.folder.path} has no checkpoint yet to fork from")
    graph_manager, changes = _changed(opened, dict(overrides or {}), steps)
    runtime = opened.runtime if seed is None else replace(opened.runtime, seed=seed)
    if "threads" in changes and threads is None:
        runtime = replace(runtime, threads=graph_manager.parameters.threads)
    require_startable(graph_manager, runtime, settings, name=name)
    videos = videos_of(settings)
    stop = StopRequests(audience.announce)
    on_activity = stop.following(audience.on_activity)
    runtime = replace(runtime, on_activity=on_activity)
    with stop, live_graph(graph_manager, runtime, **seen_by(audience, videos)):
        with fitting(checkpoint, said(changes)):
            state = checkpoint.state
            if seed is not None:
                state = with_new_streams(state, seed=seed, names=("fork",))
            graph_manager.load_state_dict(state, restart_episodes=restart_episodes)
        warn_of_missing_memories(checkpoint)
        require_work(graph_manager, checkpoint.path, may_conclude=False)
        policy = policy_of(graph_manager, settings)
        manifest = make_manifest(
            graph_manager,
            runtime,
            name=name,
            origin=Origin(command=tuple(command)),
            policy=policy,
        )
        manifest["spaces"] = spaces_to_json(graph_manager.graph.spaces)
        manifest |= _inherited(opened, checkpoint, changes, seed)
        root = opened.folder.path.parent.parent if root is None else root
        check_room(graph_manager, root / name, policy)
        before = set(code_in_parameters(opened.graph_manager.parameters))
        named = set(code_in_parameters(graph_manager.parameters)) - before
        remember_own_code(named, None, imported_folders(named))
        is_preset = opened.manifest["preset"] is not None
        source = read_text(opened.folder.preset) if is_preset else None
        folder = create_run_folder(root, name, manifest, source)
        with locked(folder.path):
            keeper = CheckpointKeeper(
                folder,
                graph_manager.state_dict,
                policy=policy,
                seed=runtime.seed,
                on_activity=on_activity,
            )
            keeper.begin_at(checkpoint, graph_manager.graph.clock.environment_steps)
            done = graph_manager.graph.clock.environment_steps
            return LiveRun(
                graph_manager, runtime, folder, settings, audience, stop, keeper, videos, done
            ).go()


def _changed(
    opened: OpenedRun, overrides: dict[str, object], steps: EnvironmentSteps | None
) -> tuple[GraphManager, dict[str, object]]:
    """The experiment with its changes, and those by their path."""
    if steps is not None:
        if "schedule.training" in overrides:
            raise ConfigurationError(
                "schedule.training is given twice, as steps and as an override; give one"
            )
        overrides["schedule.training"] = steps
    if "num_envs" in overrides:
        raise ConfigurationError(
            "num_envs cannot be changed in a fork: open episodes, memories and random streams "
            f"belong to the {opened.graph_manager.parameters.num_envs} environments of the run; "
            "leave it out"
        )
    graph_manager = opened.graph_manager
    try:
        changed = apply_overrides(graph_manager.parameters, overrides)
    except UnknownNameError as error:
        if error.name not in (opened.manifest["panel"] or {}):
            raise
        raise ConfigurationError(
            f"{error} ('{error.name}' is on the control panel of the run's preset; a fork changes "
            "the run's own parameters, by their paths)"
        ) from error
    let_import_named(code_in_parameters(changed), Path.cwd())
    return type(graph_manager)(changed), overrides


def _inherited(
    opened: OpenedRun, checkpoint: Checkpoint, changes: Mapping[str, object], seed: int | None
) -> Json:
    """The parts of a fork's manifest that come from its parent's."""
    parent = opened.manifest
    step = {
        "run": str(opened.folder.path),
        "checkpoint": checkpoint.path.name,
        "environment_steps": steps_of(checkpoint.path),
        "seed": parent["task"]["seed"],
        "changes": overrides_json(changes if seed is None else {**changes, "seed": seed}),
    }
    inherited = {
        key: parent[key] for key in ("preset", "panel", "differences", "loaded") if key in parent
    }
    return {**inherited, "ancestry": [*parent.get("ancestry", []), step]}
