"""The loop around the tick: a graph in one phase, and the records that each tick leaves."""

import time
from collections.abc import Callable, Iterator

from coach_rl.core.clock import Phase
from coach_rl.graph_managers.episode_recorder import TrainingRecorder
from coach_rl.graph_managers.evaluating import level_metrics
from coach_rl.graph_managers.graph import Graph
from coach_rl.graph_managers.progress import Progress
from coach_rl.graph_managers.run_warnings import StandstillWatch
from coach_rl.telemetry.records import LogRecord


def run_phase(
    phase: Phase,
    graph: Graph,
    progress: Progress,
    *,
    is_over: Callable[[], bool],
    recorder: TrainingRecorder | None,
    standstill: StandstillWatch,
) -> Iterator[LogRecord]:
    """Tick in a phase until it is over.

    Args:
        phase: Heat-up or training.
        graph: What ticks; its clock takes the phase.
        progress: The run's; makes the records.
        is_over: Asked before every tick.
        recorder: What films training episodes; None for nothing.
        standstill: Warns where nothing moves.
    """
    clock = graph.clock
    if recorder is not None and not recorder.is_filming:
        recorder.begin(graph.training, is_midway=(graph.tracker.lengths > 0).tolist())
    if clock.phase is not phase or not progress.has_begun:
        clock.phase, progress.has_begun = phase, True
        yield progress.record("phase")
    while not is_over():
        if changed := graph.phases.update(clock, graph.training.levels):
            yield from progress.settling([*progress.level_phase_records(changed)])
        started = time.perf_counter()
        tick = graph.tick()
        now = time.perf_counter()
        progress.training_seconds += now - started
        clock.wall_seconds = progress.seconds_at(now)
        if recorder is not None:
            recorder.note_tick(tick.answer)
        # All of the tick's state is settled before the first record leaves.
        records: list[LogRecord] = []
        if tick.answer.faults:
            records += progress.fault_records(tick.answer.faults, graph.tracker.faults)
        if tick.finished is not None:
            with_success = graph.tracker.reports_success
            records += progress.episode_records(tick.finished, with_success=with_success)
        records += [
            progress.record("train", metrics, level=level, agent=agent)
            for level, agent, metrics in tick.learned
        ]
        if progress.is_due():
            standstill.look(clock, graph.tracker.lengths)
            levels = level_metrics(graph.training, "level", graph.phases.metrics(clock))
            records += progress.speed_records(levels, graph.training.metrics())
            records += progress.signal_records(graph.training.signals.drain("signals"))
            graph.training.signals.warn_once()
        yield from progress.settling(records)
