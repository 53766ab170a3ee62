"""Running an experiment: the consumer of `GraphManager.improve()`, usable without any command line.

    result = run_experiment(graph_manager, TaskParameters(seed=1), name="cartpole")
    result = resume_experiment(result.folder.path, steps=EnvironmentSteps(200_000))

It writes what the run says into the run's folder, keeps checkpoints, stops where it was asked to,
and closes with an evaluation of its own.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.process_group import ONE_PROCESS, Order, ProcessGroup
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.experiment.checkpoint import Checkpoint, put_aside
from coach_rl.experiment.checkpoint_keeper import CheckpointKeeper
from coach_rl.experiment.data_parallel import check_group, own_device
from coach_rl.experiment.disk_space import check_disk_space
from coach_rl.experiment.evaluation import live_graph
from coach_rl.experiment.live_run import Audience, LiveRun, RunResult, RunSettings
from coach_rl.experiment.loaded_levels import load_levels
from coach_rl.experiment.manifest import (
    Origin,
    experiment_json,
    make_manifest,
    remember_code,
)
from coach_rl.experiment.opened_run import fitting, open_run, warn_of_missing_memories
from coach_rl.experiment.provenance import made_with, now
from coach_rl.experiment.resuming import (
    require_latest,
    require_never_saved,
    require_work,
    with_changes,
)
from coach_rl.experiment.run_folder import check_name, create_run_folder, write_manifest
from coach_rl.experiment.run_lock import locked
from coach_rl.experiment.run_logs import planned_cuts
from coach_rl.experiment.spaces_json import spaces_to_json
from coach_rl.experiment.stop_requests import StopRequests
from coach_rl.experiment.videos import Videos
from coach_rl.graph_managers.checkpoint_parameters import CheckpointParameters
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.task import TaskParameters, resolved_device

DEFAULT_ROOT = Path("experiments")
"""The folder of all experiments."""


def run_experiment(
    graph_manager: GraphManager,
    task: TaskParameters | None = None,
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
        task: Seed, device, threads and precision; None takes their defaults.
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
    task, settings, audience = (
        task or TaskParameters(),
        settings or RunSettings(),
        audience or Audience(),
    )
    task = replace(task, device=resolved_device(task.device))
    check_name(name)
    check_group(graph_manager, task, group)
    own_task = own_device(task, group)
    videos = videos_of(graph_manager, settings)
    follow_with(graph_manager, audience)
    stop = StopRequests(audience.announce)
    on_activity = stop.following(audience.on_activity)
    with stop, live_graph(graph_manager, own_task, on_activity=on_activity, group=group):
        policy = policy_of(graph_manager, settings)
        if policy.enabled:
            graph_manager.warn_of_restarts()
        loaded = load_levels(graph_manager)
        manifest = make_manifest(
            graph_manager, task, name=name, origin=origin or Origin(), policy=policy
        )
        manifest |= {"loaded": loaded, "spaces": spaces_to_json(graph_manager.spaces)}
        manifest |= {"processes": group.size}
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
                seed=task.seed,
                on_activity=on_activity,
            )
            return LiveRun(
                graph_manager, task, folder, settings, audience, stop, keeper, videos, None
            ).go()


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
        changes: Other parameters from now on, by path: see `resuming.CHANGEABLE`; None changes
            nothing.
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
        ConfigurationError: There is nothing to continue with, or nothing left to do, or there are
            later checkpoints that nobody allowed to drop.
        CheckpointError: A file of the run is damaged, or all checkpoints have been deleted.
    """
    settings, audience = settings or RunSettings(), audience or Audience()
    changes = {**(changes or {}), **({} if steps is None else {"schedule.training": steps})}
    audience.on_activity("reading the checkpoint")
    opened = open_run(run, device=device, threads=threads, last_good=last_good, trust=trust)
    audience.on_activity("")
    folder, checkpoint, task = opened.folder, opened.checkpoint, opened.task
    if not (last_good or drop_later):
        require_latest(opened)
    graph_manager = opened.graph_manager
    graph_manager = with_changes(graph_manager, changes) if changes else graph_manager
    check_group(graph_manager, task, group)
    own_task = own_device(task, group)
    videos = videos_of(graph_manager, settings)
    follow_with(graph_manager, audience)
    stop = StopRequests(audience.announce)
    on_activity = stop.following(audience.on_activity)
    with (
        stop,
        live_graph(graph_manager, own_task, on_activity=on_activity, group=group),
        locked(folder.path),
    ):
        policy = policy_of(graph_manager, settings)
        keeper = CheckpointKeeper(
            folder,
            graph_manager.state_dict,
            policy=policy,
            seed=task.seed,
            on_activity=on_activity,
        )
        if checkpoint is None:
            require_never_saved(opened)
            load_levels(graph_manager, opened.manifest)
            if policy.enabled:
                graph_manager.warn_of_restarts()
        else:
            with fitting(checkpoint):
                graph_manager.load_state_dict(checkpoint.state, restart_episodes=restart_episodes)
            warn_of_missing_memories(checkpoint)
            summarised = folder.summary.exists()
            require_work(graph_manager, checkpoint.path, may_conclude=not (changes or summarised))
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
        start = None if checkpoint is None else checkpoint.path.name
        manifest["resumes"].append(
            {
                "time": now(),
                "command": list(command),
                "from": start,
                "restarted_episodes": restart_episodes or _has_no_episodes(checkpoint),
                **made_with(),
            }
        )
        manifest |= experiment_json(graph_manager, task, policy)
        manifest["processes"] = group.size
        write_manifest(folder, manifest)
        group.announce(Order.RUN, text=str(folder.path.absolute()))
        done = None if checkpoint is None else graph_manager.clock.environment_steps
        return LiveRun(
            graph_manager,
            task,
            folder,
            settings,
            audience,
            stop,
            keeper,
            videos,
            done,
            trust=tuple(trust),
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
        planned = graph_manager.clock.planned
        steps = planned.count if isinstance(planned, EnvironmentSteps) else None
        state = graph_manager.state_dict()
        check_disk_space(state, folder, checkpoints=policy.most, planned_steps=steps)


def check_sinks(graph_manager: GraphManager) -> None:
    """Refuse a run one of whose sinks says that it cannot work here."""
    for each in graph_manager.parameters.sinks:
        if not callable(each):
            each.check()


def follow_with(graph_manager: GraphManager, audience: Audience) -> None:
    """Add the audience's callbacks to those of the experiment."""
    if audience.callbacks:
        graph_manager.add_callbacks(*audience.callbacks)


def videos_of(graph_manager: GraphManager, settings: RunSettings) -> Videos | None:
    """Recorder of videos of the run's evaluations; None where none is asked for."""
    return None if settings.video is None else Videos(graph_manager, settings.video)


def _has_no_episodes(checkpoint: Checkpoint | None) -> bool:
    """Return whether a checkpoint was saved without the open training episodes."""
    return checkpoint is not None and bool(checkpoint.state.get("obstacle_to_restoring"))
