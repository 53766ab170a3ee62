"""Makers of a run's own sinks: the files in its folder, and the services of the experiment."""

from collections.abc import Callable
from functools import partial

from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.runs.folder import RunFolder, read_manifest
from coach_rl.runs.introduction import introduction
from coach_rl.telemetry.csv import CsvSink, logged_names
from coach_rl.telemetry.jsonl import JsonlSink
from coach_rl.telemetry.sinks import Sink, SinkRun, made_sink, sink_name
from coach_rl.telemetry.tensorboard import TensorBoardSink


def file_sinks(
    run: RunFolder, graph_manager: GraphManager, *, tensorboard: bool
) -> dict[str, Callable[[], Sink]]:
    """Makers of the sinks that write into the run's folder, by the files' names for people."""
    folder = run.path
    files: dict[str, Callable[[], Sink]] = {
        "log.jsonl": lambda: JsonlSink(folder / "log.jsonl"),
        "the CSV files": lambda: CsvSink(folder),
    }
    if tensorboard:
        about = introduction(run, graph_manager.graph.description())
        files["TensorBoard's file"] = lambda: TensorBoardSink(
            folder,
            resumed_at=graph_manager.graph.clock.environment_steps or None,
            introduction=about,
            known=logged_names(folder),
        )
    return files


def service_sinks(run: RunFolder, graph_manager: GraphManager) -> dict[str, Callable[[], Sink]]:
    """Makers of the experiment's own sinks, by their names for people."""
    described = graph_manager.parameters.sinks
    manifest = read_manifest(run) if described else {}
    of_run = SinkRun(folder=run.path, manifest=manifest)
    return {sink_name(each): partial(made_sink, each, of_run) for each in described}
