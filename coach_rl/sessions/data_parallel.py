"""One run trained by several processes: its requirements, and the followers of the first.

The first process runs `run_experiment` or `resume_experiment` with its `group`, the others
`follow_experiment` or `follow_resumed`.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from coach_rl.configuration.parameters_json import encode
from coach_rl.core.clock import Phase
from coach_rl.core.errors import ConfigurationError, require_no_problems
from coach_rl.core.parameter_classes import SharedLearnerParameters
from coach_rl.core.runtime import Order, ProcessGroup, Runtime
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import GraphParameters
from coach_rl.graph_managers.torch_settings import resolved_device, with_threads
from coach_rl.sessions.evaluation import GraphArguments, live_graph
from coach_rl.sessions.loaded_levels import load_levels
from coach_rl.sessions.opening import (
    ContinuingArguments,
    Opening,
    open_run,
    recorded,
    with_changes,
)
from coach_rl.sessions.profile import RunProfile
from coach_rl.sessions.stop_requests import StopRequests


def check_group(graph_manager: GraphManager, runtime: Runtime) -> None:
    """Refuse what these processes cannot train together, in each of them.

    Raises:
        ConfigurationError: They have not been given the same experiment, or it cannot be shared
            out among so many.
    """
    group = runtime.group
    if group.size == 1:
        return
    parameters = graph_manager.parameters
    given = json.dumps([encode(parameters), encode(replace(runtime, device=""), "task")])
    if len(set(group.gather(given))) > 1:
        raise ConfigurationError(
            f"the {group.size} processes of this run were given different experiments or seeds; "
            "start them all by one torchrun command, from the same code"
        )
    require_no_problems(
        ConfigurationError(f"{group.size} processes cannot share this run: {problem}")
        for problem in _problems(parameters, group.size)
    )


def own_device(runtime: Runtime) -> Runtime:
    """The runtime with the device of this process: a GPU for each, or the CPU for all.

    Raises:
        ConfigurationError: One GPU is named for all of them, or there are too few.
    """
    group = runtime.group
    if group.size == 1 or (device := resolved_device(runtime.device)) == "cpu":
        return runtime
    if device != "cuda":
        raise ConfigurationError(
            f"device '{device}' is one GPU for {group.size} processes; write cuda, which gives "
            "each its own, or cpu"
        )
    return replace(runtime, device=resolved_device(f"cuda:{group.local_rank}"))


@contextmanager
def shared_graph(
    graph_manager: GraphManager, runtime: Runtime, **arguments: Unpack[GraphArguments]
) -> Iterator[None]:
    """The graph of a process of the runtime's group, built inside; see `live_graph`.

    Raises:
        ConfigurationError: It cannot be built, or these processes cannot train it together.
    """
    check_group(graph_manager, runtime)
    with live_graph(graph_manager, own_device(runtime), **arguments):
        yield


def follow_experiment(
    graph_manager: GraphManager,
    runtime: Runtime,
    *,
    group: ProcessGroup,
    on_start: Callable[[Path], None],
    profile: bool = False,
) -> None:
    """Take part in a new run that another process leads, until it is over.

    Args:
        graph_manager: The experiment; its graph is not yet created.
        runtime: The leading process's.
        group: The processes.
        on_start: Called with the run's folder.
        profile: Whether this process is profiled, in files of its own.
    """
    graph_manager = recorded(graph_manager)
    runtime = replace(with_threads(runtime, graph_manager.parameters.threads), group=group)
    with shared_graph(graph_manager, runtime, evaluation_envs=1):
        load_levels(graph_manager)
        _follow(graph_manager, group, on_start, profile)


def follow_resumed(
    *,
    changes: Mapping[str, object] | None = None,
    group: ProcessGroup,
    on_start: Callable[[Path], None],
    profile: bool = False,
    **opening: Unpack[ContinuingArguments],
) -> None:
    """Take part in a resumed run that another process leads, until it is over.

    Args:
        changes: The leading process's; see `resume_experiment`.
        group: The processes.
        on_start: Called with the run's folder.
        profile: Whether this process is profiled, in files of its own.
        **opening: The leading process's.
    """
    chosen = Path(group.next_order().text)  # by the leading process, which holds the run's lock
    opened = open_run(Opening.of(chosen, opening))
    graph_manager = recorded(with_changes(opened.graph_manager, changes or {}))
    with shared_graph(graph_manager, replace(opened.runtime, group=group), evaluation_envs=1):
        if opened.checkpoint is None:
            load_levels(graph_manager, opened.manifest)
        else:
            opened.restore(graph_manager)
        _follow(graph_manager, group, on_start, profile)


def _follow(
    graph_manager: GraphManager,
    group: ProcessGroup,
    on_start: Callable[[Path], None],
    profile: bool,
) -> None:
    """Follow the orders of the leading process, which alone decides on requests to stop."""
    graph = graph_manager.graph
    with StopRequests() as stop, stop.patient(), ExitStack() as opened:
        while (announced := group.next_order()).order is not Order.END:
            match announced.order:
                case Order.STATE:
                    graph.training.simulators.state_dict()
                case Order.RUN:
                    on_start(folder := Path(announced.text))
                    if profile:
                        opened.enter_context(_profiled(graph_manager, group, folder))
                case Order.HEATUP | Order.TRAIN as order:
                    graph.clock.phase = Phase.TRAIN if order is Order.TRAIN else Phase.HEATUP
                    graph.clock.wall_seconds = announced.seconds
                    graph.phases.update(graph.clock, graph.training.levels)
                    graph.tick()


@contextmanager
def _profiled(graph_manager: GraphManager, group: ProcessGroup, folder: Path) -> Iterator[None]:
    """Time the calls of this process, and write its profile at the end."""
    with closing(RunProfile(graph_manager, process=f"rank{group.rank}")) as timed:
        try:
            yield
        finally:
            with suppress(OSError):  # the leading process reports this for its own
                timed.write(timed.profile(), folder)


def _problems(parameters: GraphParameters, size: int) -> Iterator[str]:
    """Reasons why so many processes cannot share out an experiment."""
    if len(parameters.levels) > 1:
        yield "it has several levels, and only agents without a hierarchy learn together"
        return
    if parameters.divergence.response == "roll_back":
        yield "divergence.response='roll_back' goes back in one process; use 'stop' or 'skip'"
    if parameters.num_envs % size:
        yield (
            f"num_envs ({parameters.num_envs}) is not a multiple of {size}, and each steps as many "
            "environments; change it with -n"
        )
    agent = parameters.levels[0].agent
    if not isinstance(agent, SharedLearnerParameters):
        yield f"{type(agent).__name__} learns in one process only; run it without torchrun"
        return
    if (obstacle := agent.obstacle_to_sharing()) is not None:
        yield f"agent '{agent.name}': {obstacle}"
    for path, batch in agent.shared_batches().items():
        if batch % size:
            yield (
                f"agent.{path} ({batch}) is not a multiple of {size}, and each learns from as many "
                "transitions of a batch"
            )
