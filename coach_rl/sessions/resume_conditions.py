"""Conditions of resuming a run: work left, changes allowed, checkpoints that must not be lost."""

import re
from collections.abc import Mapping
from pathlib import Path

from coach_rl.configuration.overrides import apply_overrides
from coach_rl.core.errors import CheckpointError, ConfigurationError
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.runs.checkpoint import UNFINISHED
from coach_rl.sessions.opened_run import OpenedRun

CHANGEABLE = (
    "schedule.training",
    "schedule.stop_after",
    "schedule.until_solved",
    "validation",
    "checkpoints",
    "collection.on",
    "callbacks",
    "sinks",
    "inspect",
)
"""Parameters that may change: how long a run trains, what it keeps, where its workers are, who
follows it, and what is looked at."""


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
    ending, clock = graph_manager.progress.ending, graph_manager.graph.clock
    if ending is None or may_conclude:
        return
    schedule, name = graph_manager.parameters.schedule, checkpoint.name
    if ending == "solved":
        solved_at = graph_manager.progress.solved_at
        why = (
            f"the run stops when it reaches {graph_manager.parameters.validation}, which it did at "
            f"environment step {solved_at}; train on with --until_solved off, or "
            "give another target"
        )
    elif schedule.training.is_reached(clock):
        training, done = schedule.training, schedule.training.counted(clock)
        why = (
            f"{name} has done {done:.10g} of {training.count:.10g} {training.noun}; give a total "
            f"of environment steps above {clock.environment_steps} with --steps"
        )
    elif schedule.stop_after is None or not schedule.stop_after.is_reached(clock):
        why = (
            f"a callback has stopped the run ({ending}); train on with another total of "
            "environment steps (--steps) or hours (--hours)"
        )
    else:
        why = f"{name} has run for its {schedule.stop_after}; give more in all with --hours"
    raise ConfigurationError(f"nothing left to train: {why}")


def require_latest(opened: OpenedRun) -> None:
    """Refuse to drop checkpoints that came after the one named."""
    if opened.later:
        assert opened.checkpoint is not None
        folder, chosen = opened.folder.path, opened.checkpoint.path.name
        raise ConfigurationError(
            f"{folder} has continued from {chosen} to {opened.later[-1].name}; resuming from "
            f"{chosen} would delete later checkpoints ({len(opened.later)}) and the logs after it. "
            f"To keep both: `coach fork {folder}@{chosen} --as NAME`; to delete them: --drop_later"
        )


def require_never_saved(opened: OpenedRun) -> None:
    """Refuse to begin anew, which drops the logs, where the run did have checkpoints.

    One that was killed while it wrote its first has announced it, and left a part of it behind.
    """
    folder, manifest = opened.folder, opened.manifest
    if not manifest["parameters"].get("checkpoints", {}).get("enabled", True):
        raise CheckpointError(
            f"the run {folder.path} keeps no checkpoints (checkpoints.enabled=False), so it cannot "
            "be resumed; start a new run"
        )
    if manifest.get("ancestry"):
        raise CheckpointError(
            f"the fork {folder.path} has no checkpoint: it was killed before its first one, or all "
            "have been deleted; fork the run it comes from again"
        )
    log = folder.path / "log.jsonl"
    text = log.read_bytes() if log.exists() else b""
    announced = re.findall(rb'"kind": ?"(checkpoint(?:_failed)?)"', text)
    is_announced = announced.count(b"checkpoint") > announced.count(b"checkpoint_failed")
    if is_announced and not list(folder.checkpoints.glob(UNFINISHED)):
        raise CheckpointError(
            f"all checkpoints of the run {folder.path} have been deleted, so it cannot be resumed; "
            "start a new run, or delete its log.jsonl to begin this one anew"
        )
