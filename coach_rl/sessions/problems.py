"""Checks of an experiment before anything is built, which report all problems together."""

from collections.abc import Iterator
from dataclasses import replace

from coach_rl.core.errors import ConfigurationError, problems_of, require_no_problems
from coach_rl.core.parameter_classes import MovableParameters
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.torch_settings import resolved_device
from coach_rl.runs.folder import check_name
from coach_rl.sessions.settings import RunSettings


def require_startable(
    graph_manager: GraphManager, runtime: Runtime, settings: RunSettings, *, name: str = ""
) -> None:
    """Raise the problems that keep a run from starting, as one error.

    Args:
        graph_manager: The experiment; its graph is not yet created.
        runtime: Seed and device.
        settings: How to run it.
        name: The name of the folder that holds the run's; empty: the run has a folder.

    Raises:
        ConfigurationError: There is a problem; `ProblemsError` where there are several.
    """
    named = problems_of(check_name, name) if name else ()
    require_no_problems([*named, *_problems(graph_manager, runtime, settings)])


def _problems(
    graph_manager: GraphManager, runtime: Runtime, settings: RunSettings
) -> Iterator[str | ConfigurationError]:
    parameters = graph_manager.parameters
    try:
        device = resolved_device(runtime.device)
    except ConfigurationError as error:
        yield error
    else:
        for level in parameters.levels:
            if isinstance(level.agent, MovableParameters):
                yield from problems_of(level.agent.check_device, device)
    yield from problems_of(parameters.schedule.check_heatup)
    policy = settings.checkpoints or parameters.checkpoints
    if settings.checkpoints is not None:
        yield from problems_of(replace, parameters, checkpoints=policy)
    needs_memories = parameters.divergence.response == "roll_back"
    if needs_memories and not (policy.enabled and policy.memories):
        yield (
            "divergence.response='roll_back' needs checkpoints with replay memories to go back to; "
            "leave them on, or use 'skip' or 'stop'"
        )
    for part in settings.parts:
        yield from problems_of(part.check, settings)
    for sink in parameters.sinks:
        if not callable(sink):
            yield from problems_of(sink.check)
