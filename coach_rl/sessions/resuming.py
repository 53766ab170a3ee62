"""Resuming a run in its folder.

result = resume_experiment(run_folder, steps=EnvironmentSteps(200_000))
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from coach_rl.core.process_group import ONE_PROCESS, Order, ProcessGroup
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers.run_warnings import warn_of_restarts
from coach_rl.runs.checkpoint import Checkpoint, put_aside
from coach_rl.runs.finding import find_folder
from coach_rl.runs.folder import write_manifest
from coach_rl.runs.keeper import CheckpointKeeper
from coach_rl.runs.lock import locked
from coach_rl.runs.logs import planned_cuts
from coach_rl.runs.manifest import experiment_json
from coach_rl.runs.provenance import made_with, now
from coach_rl.sessions.data_parallel import check_group, own_device
from coach_rl.sessions.evaluation import live_graph
from coach_rl.sessions.live_run import LiveRun
from coach_rl.sessions.loaded_levels import load_levels
from coach_rl.sessions.opened_run import fitting, open_run, warn_of_missing_memories
from coach_rl.sessions.problems import require_startable
from coach_rl.sessions.resume_conditions import (
    require_latest,
    require_never_saved,
    require_work,
    with_changes,
)
from coach_rl.sessions.runner import check_room, policy_of, seen_by, videos_of
from coach_rl.sessions.settings import Audience, RunResult, RunSettings
from coach_rl.sessions.stop_requests import StopRequests


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
        changes: Other parameters from now on, by path: see `resume_conditions.CHANGEABLE`; None
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
        require_startable(graph_manager, runtime, settings)
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


def _has_no_episodes(checkpoint: Checkpoint | None) -> bool:
    """Return whether a checkpoint was saved without the open training episodes."""
    return checkpoint is not None and bool(checkpoint.state.get("obstacle_to_restoring"))
