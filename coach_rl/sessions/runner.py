"""Running an experiment: the consumer of `GraphManager.improve()`, usable without any command line.

    result = run_experiment(graph_manager, Runtime(seed=1), name="cartpole")

It writes what the run says into the run's folder, keeps checkpoints, stops where it was asked to,
and closes with an evaluation of its own.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from coach_rl.configuration.spaces_json import spaces_to_json
from coach_rl.core.process_group import ONE_PROCESS, Order, ProcessGroup
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.graph_managers.run_warnings import warn_of_restarts
from coach_rl.graph_managers.torch_settings import resolved
from coach_rl.runs.creation import create_run_folder
from coach_rl.runs.disk_space import check_disk_space
from coach_rl.runs.keeper import CheckpointKeeper
from coach_rl.runs.lock import locked
from coach_rl.runs.manifest import Origin, check_importable, make_manifest, remember_code
from coach_rl.sessions.data_parallel import check_group, own_device
from coach_rl.sessions.evaluation import live_graph, require_graph_manager
from coach_rl.sessions.live_run import LiveRun
from coach_rl.sessions.loaded_levels import load_levels
from coach_rl.sessions.problems import require_startable
from coach_rl.sessions.settings import Audience, RunResult, RunSettings
from coach_rl.sessions.stop_requests import StopRequests
from coach_rl.sessions.videos import Videos

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
    require_startable(graph_manager, runtime, settings, name=name)
    stop = StopRequests(audience.announce)
    on_activity = stop.following(audience.on_activity)
    runtime = replace(
        resolved(runtime, graph_manager.parameters), group=group, on_activity=on_activity
    )
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
        check_importable(graph_manager, manifest, in_background=settings.background_evaluation)
        check_room(graph_manager, root / name, policy)
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
    return policy


def check_room(graph_manager: GraphManager, folder: Path, policy: CheckpointParameters) -> None:
    """Refuse a run whose checkpoints would not fit on the disk."""
    if policy.enabled and policy.memories:
        planned = graph_manager.graph.clock.planned
        steps = planned.count if isinstance(planned, EnvironmentSteps) else None
        state = graph_manager.state_dict()
        check_disk_space(state, folder, checkpoints=policy.most, planned_steps=steps)


def seen_by(audience: Audience, videos: Videos | None) -> dict[str, Any]:
    """Callbacks and cameras, as arguments of `live_graph`."""
    cameras = {} if videos is None else {"watcher": videos.watcher, "recorder": videos.recorder}
    return {"callbacks": audience.callbacks, **cameras}


def videos_of(settings: RunSettings) -> Videos | None:
    """Recorder of videos of the run's evaluations; None if none is requested."""
    return None if settings.video is None else Videos(settings.video)
