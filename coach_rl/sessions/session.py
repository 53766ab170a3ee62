"""Sessions that train: a new run, a run resumed in its folder, a fork of a run.

    result = run_experiment(graph_manager, Runtime(seed=1), name="cartpole")
    result = resume_experiment(run_folder, steps=EnvironmentSteps(200_000))
    fork_experiment(
        Path("experiments/cartpole/...@20000"),
        name="cartpole_slower",
        overrides={"agent.optimizer.learning_rate": 1e-4},
    )

A fork is a new run that starts from another one's state, with changed parameters. The run it comes
from coach_rl.graph_managers.run_warnings import warn_of_restarts
from, its parent, stays as it is.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from coach_rl.configuration.overrides import apply_overrides, overrides_json, said
from coach_rl.configuration.parameters_json import spaces_to_json
from coach_rl.configuration.strict_json import Json, read_text
from coach_rl.configuration.trust import code_in_parameters, remember_own_code
from coach_rl.configuration.user_modules import imported_folders, let_import_named
from coach_rl.core.errors import CheckpointError, ConfigurationError, UnknownNameError
from coach_rl.core.process_group import ONE_PROCESS, Order, ProcessGroup
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers.checkpoint_parameters import CheckpointParameters
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.run_warnings import warn_of_restarts
from coach_rl.graph_managers.torch_settings import resolved
from coach_rl.runs.checkpoint import Checkpoint, put_aside, steps_of
from coach_rl.runs.folder import check_name, create_run_folder, find_folder, write_manifest
from coach_rl.runs.keeper import CheckpointKeeper, check_disk_space
from coach_rl.runs.lock import locked
from coach_rl.runs.logs import planned_cuts
from coach_rl.runs.manifest import (
    Origin,
    check_importable,
    experiment_json,
    made_with,
    make_manifest,
    now,
    remember_code,
)
from coach_rl.sessions.data_parallel import check_group, own_device
from coach_rl.sessions.evaluation import live_graph, require_graph_manager
from coach_rl.sessions.live_run import LiveRun, Videos
from coach_rl.sessions.loaded_levels import load_levels
from coach_rl.sessions.opening import (
    OpenedRun,
    fitting,
    open_run,
    require_latest,
    require_never_saved,
    require_work,
    warn_of_missing_memories,
    with_changes,
    with_new_streams,
)
from coach_rl.sessions.settings import Audience, RunResult, RunSettings
from coach_rl.sessions.stop_requests import StopRequests

DEFAULT_ROOT = Path("experiments")
"""The folder of all experiments."""


def run_experiment(
    graph_manager: GraphManager,
    runtime: Runtime | None = None,
    *,
    name: str,
    root: Path = DEFAULT_ROOT,
    origin: Origin | None = None,
    settings: RunSettings | None = None,
    audience: Audience | None = None,
    group: ProcessGroup = ONE_PROCESS,
) -> RunResult:
    """Run an experiment from its beginning, in a new run folder.

    The folder is made only after the graph is built, so a wrong parameter leaves nothing behind.
    The graph manager is closed at the end, whatever happens.

    Args:
        graph_manager: What to run; its graph is not yet created.
        runtime: Seed, device, threads and precision; None takes their defaults, and the
            experiment's threads.
        name: The experiment's name, the folder above the run's.
        root: The folder of all experiments.
        origin: Where the experiment came from; None when from nowhere but this call.
        settings: How to run it; None takes the defaults.
        audience: Receivers of its records besides the run's files; None for none.
        group: The processes that train it together, of which this one leads.

    Raises:
        ConfigurationError: The experiment cannot be built or saved, or its parameters cannot be
            recorded.
        RunError: Something went wrong while running.
    """
    require_graph_manager(graph_manager)
    runtime, settings, audience = (
        runtime or Runtime(),
        settings or RunSettings(),
        audience or Audience(),
    )
    stop = StopRequests(audience.announce)
    on_activity = stop.following(audience.on_activity)
    runtime = replace(
        resolved(runtime, graph_manager.parameters), group=group, on_activity=on_activity
    )
    check_name(name)
    check_group(graph_manager, runtime)
    videos = videos_of(settings)
    with stop, live_graph(graph_manager, own_device(runtime), **seen_by(audience, videos)):
        policy = policy_of(graph_manager, settings)
        if policy.enabled:
            warn_of_restarts(graph_manager.parameters, graph_manager.graph.obstacle_to_restoring)
        loaded = load_levels(graph_manager)
        manifest = make_manifest(
            graph_manager, runtime, name=name, origin=origin or Origin(), policy=policy
        )
        manifest |= {"loaded": loaded, "spaces": spaces_to_json(graph_manager.graph.spaces)}
        manifest |= {"processes": group.size}
        check_importable(graph_manager, manifest, evaluates_aside=settings.evaluate_aside)
        check_room(graph_manager, root / name, policy)
        check_sinks(graph_manager)
        remember_code(graph_manager, manifest, origin)
        preset = origin.preset if origin else None
        folder = create_run_folder(root, name, manifest, preset.source if preset else None)
        group.announce(Order.RUN, text=str(folder.path.absolute()))
        with locked(folder.path):
            keeper = CheckpointKeeper(
                folder,
                graph_manager.state_dict,
                policy=policy,
                seed=runtime.seed,
                on_activity=on_activity,
            )
            return LiveRun(
                graph_manager, runtime, folder, settings, audience, stop, keeper, videos, None
            ).go()


def policy_of(graph_manager: GraphManager, settings: RunSettings) -> CheckpointParameters:
    """The policy of checkpoints."""
    policy: CheckpointParameters = settings.checkpoints or graph_manager.parameters.checkpoints
    needs_memories = graph_manager.parameters.divergence.response == "roll_back"
    if needs_memories and not (policy.enabled and policy.memories):
        raise ConfigurationError(
            "divergence.response='roll_back' needs checkpoints with replay memories to go back to; "
            "leave them on, or use 'skip' or 'stop'"
        )
    return policy


def check_room(graph_manager: GraphManager, folder: Path, policy: CheckpointParameters) -> None:
    """Refuse a run whose checkpoints would not fit on the disk."""
    if policy.enabled and policy.memories:
        planned = graph_manager.graph.clock.planned
        steps = planned.count if isinstance(planned, EnvironmentSteps) else None
        state = graph_manager.state_dict()
        check_disk_space(state, folder, checkpoints=policy.most, planned_steps=steps)


def check_sinks(graph_manager: GraphManager) -> None:
    """Refuse a run one of whose sinks says that it cannot work here."""
    for each in graph_manager.parameters.sinks:
        if not callable(each):
            each.check()


def seen_by(audience: Audience, videos: Videos | None) -> dict[str, Any]:
    """Callbacks and cameras, as arguments of `live_graph`."""
    cameras = {} if videos is None else {"watcher": videos.watcher, "recorder": videos.recorder}
    return {"callbacks": audience.callbacks, **cameras}


def videos_of(settings: RunSettings) -> Videos | None:
    """Recorder of videos of the run's evaluations; None if none is requested."""
    return None if settings.video is None else Videos(settings.video)


def resume_experiment(
    run: Path,
    *,
    steps: EnvironmentSteps | None = None,
    changes: Mapping[str, object] | None = None,
    device: str | None = None,
    threads: int | None = None,
    last_good: bool = False,
    drop_later: bool = False,
    restart_episodes: bool = False,
    command: Sequence[str] = (),
    settings: RunSettings | None = None,
    audience: Audience | None = None,
    trust: Collection[str] = (),
    group: ProcessGroup = ONE_PROCESS,
) -> RunResult:
    """Go on with a run in its folder, from its last checkpoint or the one named.

    Log lines after that checkpoint are dropped, because they will be written again. A run that was
    killed before its first checkpoint starts anew; one whose checkpoints have been deleted is
    refused.

    Args:
        run: A run's folder, or one of its checkpoints (`RUN/checkpoints/step_2048`, `RUN@2048`,
            `RUN@best`).
        steps: Environment steps to train to, in all; None keeps the run's own plan.
        changes: Other parameters from now on, by path: see `opening.CHANGEABLE`; None
            changes nothing.
        device: Where to run from now on; None keeps the run's own.
        threads: Threads of one tensor operation on the CPU from now on; None keeps the run's own.
            Another number changes the numbers, which a `CoachWarning` says.
        last_good: Whether to take the newest checkpoint that can be read; damaged ones after it
            are put aside under another name.
        drop_later: Whether checkpoints after the one named, and the logs after it, are deleted.
        restart_episodes: Whether to begin the open training episodes anew instead of restoring
            them: where that fails, or takes long.
        command: The command line, for the manifest.
        settings: How to run it; None takes the defaults.
        audience: Receivers of its records besides the run's files; None for none.
        trust: Modules whose code the run may use, besides those of the user's own runs.
        group: The processes that train it together from now on, of which this one leads.

    Raises:
        RunInUseError: Another process holds it.
        ConfigurationError: There is nothing to continue with, or nothing left to do, or there are
            later checkpoints that nobody allowed to drop.
        CheckpointError: A file of the run is damaged, or all checkpoints have been deleted.
    """
    settings, audience = settings or RunSettings(), audience or Audience()
    changes = {**(changes or {}), **({} if steps is None else {"schedule.training": steps})}
    stop = StopRequests(audience.announce)
    on_activity = stop.following(audience.on_activity)
    with stop, locked(find_folder(run).path):  # before anything is read, which others may replace
        audience.on_activity("reading the checkpoint")
        opened = open_run(run, device=device, threads=threads, last_good=last_good, trust=trust)
        audience.on_activity("")
        folder, checkpoint = opened.folder, opened.checkpoint
        runtime = replace(opened.runtime, group=group, on_activity=on_activity)
        if not (last_good or drop_later):
            require_latest(opened)
        start = folder.path if checkpoint is None else checkpoint.path
        group.announce(Order.RESUME, text=str(start))
        graph_manager = opened.graph_manager
        graph_manager = with_changes(graph_manager, changes) if changes else graph_manager
        check_group(graph_manager, runtime)
        videos = videos_of(settings)
        with live_graph(graph_manager, own_device(runtime), **seen_by(audience, videos)):
            policy = policy_of(graph_manager, settings)
            keeper = CheckpointKeeper(
                folder,
                graph_manager.state_dict,
                policy=policy,
                seed=runtime.seed,
                on_activity=on_activity,
            )
            if checkpoint is None:
                require_never_saved(opened)
                load_levels(graph_manager, opened.manifest)
                if policy.enabled:
                    obstacle = graph_manager.graph.obstacle_to_restoring
                    warn_of_restarts(graph_manager.parameters, obstacle)
            else:
                with fitting(checkpoint):
                    graph_manager.load_state_dict(
                        checkpoint.state, restart_episodes=restart_episodes
                    )
                warn_of_missing_memories(checkpoint)
                summarised = folder.summary.exists()
                require_work(
                    graph_manager, checkpoint.path, may_conclude=not (changes or summarised)
                )
            check_room(graph_manager, folder.checkpoints, policy)
            check_sinks(graph_manager)
            cuts = planned_cuts(folder.path, checkpoint)
            if last_good:
                put_aside(opened.later)
            keeper.restore(checkpoint)
            for cut in cuts:
                cut.make()
            folder.summary.unlink(missing_ok=True)
            manifest = opened.manifest
            manifest["resumes"].append(
                {
                    "time": now(),
                    "command": list(command),
                    "from": None if checkpoint is None else checkpoint.path.name,
                    "restarted_episodes": restart_episodes or _has_no_episodes(checkpoint),
                    **made_with(),
                }
            )
            manifest |= experiment_json(graph_manager, runtime, policy)
            manifest["processes"] = group.size
            write_manifest(folder, manifest)
            group.announce(Order.RUN, text=str(folder.path.absolute()))
            done = None if checkpoint is None else graph_manager.graph.clock.environment_steps
            return LiveRun(
                graph_manager,
                runtime,
                folder,
                settings,
                audience,
                stop,
                keeper,
                videos,
                done,
                trust=tuple(trust),
            ).go()


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
        check_sinks(graph_manager)
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


def _has_no_episodes(checkpoint: Checkpoint | None) -> bool:
    """Return whether a checkpoint was saved without the open training episodes."""
    return checkpoint is not None and bool(checkpoint.state.get("obstacle_to_restoring"))


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
