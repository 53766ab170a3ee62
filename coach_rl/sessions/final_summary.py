"""The summary of a finished run: its final evaluation, its checkpoints, and what went wrong."""

from dataclasses import replace
from pathlib import Path

from coach_rl.configuration.strict_json import plain_json, write_json
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.runs.checkpoint import BEST, LAST, POINTERS, pointed
from coach_rl.runs.folder import RunFolder
from coach_rl.runs.provenance import now
from coach_rl.sessions.evaluation import evaluation_json
from coach_rl.telemetry.best_evaluation import Best
from coach_rl.telemetry.records import Evaluation, Kind, LogRecord
from coach_rl.telemetry.summary import Summary


def summary_of(
    graph_manager: GraphManager,
    evaluation: Evaluation,
    checkpoints: Path,
    *,
    best: Best | None,
    incidents: tuple[str, ...],
) -> Summary:
    """The summary of a run that is over.

    Args:
        graph_manager: What has run.
        evaluation: The final evaluation.
        checkpoints: The folder of the run's checkpoints.
        best: The best evaluation while training; None when there was none.
        incidents: Troubles that did not end the run, a line each; success rates that no level has
            reached are added.
    """
    seconds = graph_manager.progress.training_seconds
    target, ending = graph_manager.parameters.validation, graph_manager.progress.ending
    names = {pointer: pointed(checkpoints, pointer) for pointer in POINTERS}
    paths = {of: name and f"{checkpoints.name}/{name}" for of, name in names.items()}
    return Summary(
        evaluation=evaluation,
        steps_per_second=evaluation.environment_steps / seconds if seconds else 0.0,
        best_checkpoint=paths[BEST],
        last_checkpoint=paths[LAST],
        best="" if best is None else str(best),
        ending=ending or "",
        target="" if target is None else target.report(graph_manager.progress.solved_at),
        solved_at=graph_manager.progress.solved_at,
        incidents=(*incidents, *graph_manager.graph.phases.unreached()),
        faults=graph_manager.graph.tracker.faults,
        signals=graph_manager.progress.signals,
        fork_steps=graph_manager.graph.training.fork_steps,
    )


def write_summary(folder: RunFolder, summary: Summary, best: Best | None, *, seed: int) -> None:
    """Write a run's summary into its folder; OSError where that cannot be done."""
    document = {
        "created": now(),
        "seed": seed,
        **summary.as_json(),
        "best_evaluation": None if best is None else vars(best),
        "evaluated_episodes": evaluation_json(summary.evaluation)["episodes"],
    }
    write_json(folder.summary, plain_json(document))


def as_final(record: LogRecord) -> LogRecord:
    """A record of the final evaluation under names of its own: its starts are not those before."""
    kind: Kind = "final_evaluation" if record.kind == "evaluation" else record.kind
    scalars = {f"final_{name}": value for name, value in record.scalars.items()}
    return replace(record, kind=kind, scalars=scalars)
