"""Running an experiment: the consumer of `GraphManager.improve()`, usable without any command line.

    result = run_experiment(graph_manager, TaskParameters(seed=1), name="cartpole")
    result = resume_experiment(result.folder.path, steps=EnvironmentSteps(200_000))

It writes what the run says into the run's folder, keeps checkpoints, stops where it was asked to,
and closes with an evaluation of its own.
"""

import re
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from coach_rl.core.errors import CheckpointError, CoachWarning, ConfigurationError
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.experiment.checkpoint import (
    UNFINISHED,
    Checkpoint,
    read_checkpoint,
)
from coach_rl.experiment.checkpoint_keeper import (
    CheckpointKeeper,
    require_same_seed,
)
from coach_rl.experiment.disk_space import check_disk_space
from coach_rl.experiment.evaluation import (
    Videos,
    live_graph,
)
from coach_rl.experiment.live_run import Audience, LiveRun, RunResult, RunSettings, cut_back
from coach_rl.experiment.loaded_levels import load_levels
from coach_rl.experiment.manifest import (
    Origin,
    made_with,
    make_manifest,
    now,
    rebuild,
    remember_code,
)
from coach_rl.experiment.parameters_json import encode
from coach_rl.experiment.resuming import require_work, with_changes
from coach_rl.experiment.run_folder import (
    RunFolder,
    check_name,
    create_run_folder,
    find_run,
)
from coach_rl.experiment.run_lock import locked
from coach_rl.experiment.spaces_json import spaces_to_json
from coach_rl.experiment.stop_requests import StopRequests
from coach_rl.experiment.strict_json import Json, write_json
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
    videos = _videos(graph_manager, settings)
    stop = StopRequests(audience.announce)
    on_activity = stop.following(audience.on_activity)
    with stop, live_graph(graph_manager, task, on_activity=on_activity):
        policy = _policy(graph_manager, settings)
        if policy.enabled:
            graph_manager.warn_of_restarts()
        loaded = load_levels(graph_manager)
        manifest = make_manifest(graph_manager, task, name=name, origin=origin or Origin())
        manifest["parameters"]["checkpoints"] = encode(policy)
        manifest |= {"loaded": loaded, "spaces": spaces_to_json(graph_manager.spaces)}
        _check_disk_space(graph_manager, root / name, policy)
        remember_code(graph_manager, manifest, origin)
        folder = create_run_folder(root, name, manifest, origin.preset if origin else None)
        with locked(folder.path):
            keeper = CheckpointKeeper(
                folder, graph_manager.state_dict, policy=policy, seed=task.seed
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
    restart_episodes: bool = False,
    command: Sequence[str] = (),
    settings: RunSettings | None = None,
    audience: Audience | None = None,
    trust: Collection[str] = (),
) -> RunResult:
    """Go on with a run in its folder, from its last checkpoint or the one named.

    What the run wrote after that checkpoint, log lines and later checkpoints, is dropped, because
    it will be written again. A run that was killed before its first checkpoint starts anew; one
    whose checkpoints have been deleted is refused.

    Args:
        run: A run's folder, or one of its checkpoints (`RUN/checkpoints/step_2048`, `.../best`).
        steps: Environment steps to train to, in all; None keeps the run's own plan.
        changes: Other parameters from now on, by path: see `resuming.CHANGEABLE`; None changes
            nothing.
        device: Where to run from now on; None keeps the run's own.
        threads: Threads of one tensor operation on the CPU from now on; None keeps the run's own.
            Another number changes the numbers, which a `CoachWarning` says.
        restart_episodes: Whether to begin the open training episodes anew instead of restoring
            them: where that fails, or takes long.
        command: The command line, for the manifest.
        settings: How to run it; None takes the defaults.
        audience: Receivers of its records besides the run's files; None for none.
        trust: Modules whose code the run may use, besides those of the user's own runs.

    Raises:
        ConfigurationError: There is nothing to continue with, or nothing left to do.
        CheckpointError: The manifest or the checkpoint cannot be read, or all have been deleted.
    """
    settings, audience = settings or RunSettings(), audience or Audience()
    folder, path = find_run(run)
    changes = {**(changes or {}), **({} if steps is None else {"schedule.training": steps})}
    graph_manager, task, manifest = rebuild(folder, device, threads=threads, trust=trust)
    graph_manager = with_changes(graph_manager, changes) if changes else graph_manager
    checkpoint = None if path is None else read_checkpoint(path)
    if checkpoint is not None:
        require_same_seed(checkpoint, task.seed)
    videos = _videos(graph_manager, settings)
    stop = StopRequests(audience.announce)
    on_activity = stop.following(audience.on_activity)
    with stop, live_graph(graph_manager, task, on_activity=on_activity), locked(folder.path):
        policy = _policy(graph_manager, settings)
        keeper = CheckpointKeeper(folder, graph_manager.state_dict, policy=policy, seed=task.seed)
        if checkpoint is None:
            _require_never_saved(folder, manifest)
            load_levels(graph_manager, manifest)
            if policy.enabled:
                graph_manager.warn_of_restarts()
        else:
            graph_manager.load_state_dict(checkpoint.state, restart_episodes=restart_episodes)
            _warn_of_missing_memories(checkpoint)
            summarised = folder.summary.exists()
            require_work(graph_manager, checkpoint.path, may_conclude=not (changes or summarised))
        _check_disk_space(graph_manager, folder.checkpoints, policy)
        keeper.restore(checkpoint)
        cut_back(folder, checkpoint)
        folder.summary.unlink(missing_ok=True)
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
        manifest |= {"parameters": encode(graph_manager.parameters), "task": encode(task)}
        manifest["parameters"]["checkpoints"] = encode(policy)
        write_json(folder.manifest, manifest)
        done = None if checkpoint is None else graph_manager.clock.environment_steps
        return LiveRun(
            graph_manager, task, folder, settings, audience, stop, keeper, videos, done
        ).go()


def _policy(graph_manager: GraphManager, settings: RunSettings) -> CheckpointParameters:
    """The policy of checkpoints."""
    policy: CheckpointParameters = settings.checkpoints or graph_manager.parameters.checkpoints
    needs_memories = graph_manager.parameters.divergence.response == "roll_back"
    if needs_memories and not (policy.enabled and policy.memories):
        raise ConfigurationError(
            "divergence.response='roll_back' needs checkpoints with replay memories to go back to; "
            "leave them on, or use 'skip' or 'stop'"
        )
    return policy


def _check_disk_space(
    graph_manager: GraphManager, folder: Path, policy: CheckpointParameters
) -> None:
    if policy.enabled and policy.memories:
        planned = graph_manager.clock.planned
        steps = planned.count if isinstance(planned, EnvironmentSteps) else None
        state = graph_manager.state_dict()
        check_disk_space(state, folder, checkpoints=policy.most, planned_steps=steps)


def _videos(graph_manager: GraphManager, settings: RunSettings) -> Videos | None:
    return None if settings.video is None else Videos(graph_manager, settings.video)


def _has_no_episodes(checkpoint: Checkpoint | None) -> bool:
    """Return whether a checkpoint was saved without the open training episodes."""
    return checkpoint is not None and bool(checkpoint.state.get("obstacle_to_restoring"))


def _warn_of_missing_memories(checkpoint: Checkpoint) -> None:
    if not checkpoint.has_memories:
        warnings.warn(
            f"{checkpoint.path.name} was saved without replay memories, so the resumed run is not "
            "exact: its agents act with what they have learned, and learn again once their "
            "memories hold learning.learning_starts transitions",
            CoachWarning,
            stacklevel=3,
        )


def _require_never_saved(folder: RunFolder, manifest: Json) -> None:
    """Refuse to begin anew, which drops the logs, where the run did have checkpoints.

    One that was killed while it wrote its first has announced it, and left a part of it behind.
    """
    if not manifest["parameters"].get("checkpoints", {}).get("enabled", True):
        raise CheckpointError(
            f"the run {folder.path} keeps no checkpoints (checkpoints.enabled=False), so it cannot "
            "be resumed; start a new run"
        )
    log = folder.path / "log.jsonl"
    announced = (
        re.findall(r'"kind": ?"(checkpoint(?:_failed)?)"', log.read_text()) if log.exists() else []
    )
    is_announced = announced.count("checkpoint") > announced.count("checkpoint_failed")
    if is_announced and not list(folder.checkpoints.glob(UNFINISHED)):
        raise CheckpointError(
            f"all checkpoints of the run {folder.path} have been deleted, so it cannot be resumed; "
            "start a new run, or delete its log.jsonl to begin this one anew"
        )
