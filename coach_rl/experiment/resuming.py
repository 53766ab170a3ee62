"""What is left of a run that is resumed, and what may change in it."""

from collections.abc import Mapping
from pathlib import Path

from coach_rl.core.errors import ConfigurationError
from coach_rl.experiment.overrides import apply_overrides
from coach_rl.graph_managers.graph_manager import GraphManager

CHANGEABLE = (
    "schedule.training",
    "schedule.stop_after",
    "schedule.until_solved",
    "validation",
    "checkpoints",
)
"""Parameters that may change: how long a run trains, and what it keeps."""


def with_changes(graph_manager: GraphManager, changes: Mapping[str, object]) -> GraphManager:
    """The same experiment with some of its parameters changed.

    Args:
        graph_manager: The experiment; its graph is not yet created.
        changes: Values by path, each one of `CHANGEABLE` or below one.

    Raises:
        ConfigurationError: Another parameter, or a value that does not fit.
    """
    for path in changes:
        if not any(f"{path}.".startswith(f"{allowed}.") for allowed in CHANGEABLE):
            raise ConfigurationError(
                f"a run that is resumed keeps its '{path}'; what may change: "
                f"{', '.join(CHANGEABLE)}"
            )
    return type(graph_manager)(apply_overrides(graph_manager.parameters, changes))


def require_work(graph_manager: GraphManager, checkpoint: Path, *, may_conclude: bool) -> None:
    """Refuse a run that is over; one that was stopped before its last evaluation may conclude.

    Args:
        graph_manager: The experiment, with the checkpoint's state.
        checkpoint: Where it would continue.
        may_conclude: Whether a run without training left may still evaluate.

    Raises:
        ConfigurationError: Nothing is left to do; says how to train on.
    """
    ending, clock = graph_manager.ending, graph_manager.clock
    if ending is None or may_conclude:
        return
    schedule, name = graph_manager.parameters.schedule, checkpoint.name
    if ending == "solved":
        why = (
            f"the run stops when it reaches {graph_manager.parameters.validation}, which it did at "
            f"environment step {graph_manager.solved_at}; train on with --until_solved off, or "
            "give another target"
        )
    elif schedule.training.is_reached(clock):
        training, done = schedule.training, schedule.training.counted(clock)
        why = (
            f"{name} has done {done:.10g} of {training.count:.10g} {training.noun}; give a total "
            f"of environment steps above {clock.environment_steps} with --steps"
        )
    else:
        why = f"{name} has run for its {schedule.stop_after}; give more in all with --hours"
    raise ConfigurationError(f"nothing left to train: {why}")
