"""The progress of an experiment, and the log records that report it."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.records import Array, Fault
from coach_rl.core.state import State
from coach_rl.graph_managers.episode_tracker import FinishedEpisodes
from coach_rl.graph_managers.parameters import ScheduleParameters
from coach_rl.telemetry.records import Kind, LogRecord

_SAVED = (
    "has_begun",
    "next_evaluation",
    "evaluated_at",
    "evaluations_tell_success",
    "next_progress",
    "training_seconds",
    "wall_seconds",
)


class Progress:
    """The progress of an experiment beyond the counters of its clock.

    Args:
        schedule: The experiment's; the first evaluation comes an interval after heat-up.
    """

    def __init__(self, schedule: ScheduleParameters) -> None:
        interval = schedule.evaluation_interval
        self.has_begun = False
        """True if the record of the first phase has been yielded."""
        self.next_evaluation = schedule.heatup.count + (interval.count if interval else 0)
        """Environment steps at which the next evaluation is due."""
        self.evaluated_at = 0
        """Environment steps at the last evaluation."""
        self.evaluations_tell_success = False
        """True if the evaluation environment has ever reported success."""
        self.next_progress = schedule.progress_interval.count
        """Environment steps at which the next progress record is due."""
        self.training_seconds = 0.0
        """Seconds spent in heat-up and training; evaluation is not counted."""
        self.wall_seconds = 0.0
        """Seconds from the beginning of the run to its last record, pauses left out."""
        self._progress_interval = schedule.progress_interval.count
        self.go_on()

    def go_on(self) -> None:
        """The run begins, or continues after a pause."""
        self._since = time.perf_counter() - self.wall_seconds

    def is_due(self, clock: Clock) -> bool:
        """Return whether a progress record is due; if so, the next one is due an interval later."""
        is_due = clock.environment_steps >= self.next_progress
        while self.next_progress <= clock.environment_steps:
            self.next_progress += self._progress_interval
        return is_due

    def record(
        self,
        kind: Kind,
        clock: Clock,
        metrics: Mapping[str, float] | None = None,
        *,
        phase: Phase | None = None,
        level: str = "",
        agent: str = "",
        arrays: Mapping[str, Array] | None = None,
    ) -> LogRecord:
        """A record of this moment.

        Args:
            kind: Its subject.
            clock: Phase and counters of training.
            metrics: Numbers; None for none.
            phase: Where it isn't the clock's.
            level: The level it belongs to.
            agent: The agent it belongs to.
            arrays: Arrays; None for none.
        """
        self.wall_seconds = time.perf_counter() - self._since
        return LogRecord(
            kind=kind,
            phase=phase or clock.phase,
            environment_steps=clock.environment_steps,
            training_steps=clock.training_steps,
            episodes=clock.episodes,
            wall_seconds=self.wall_seconds,
            level=level,
            agent=agent,
            scalars=metrics or {},
            arrays=arrays or {},
        )

    def episode_records(
        self, clock: Clock, finished: FinishedEpisodes, *, with_success: bool
    ) -> Iterator[LogRecord]:
        """A record for each training episode that has ended."""
        for episode in range(len(finished)):
            metrics = {
                "episode/reward": float(finished.reward[episode]),
                "episode/length": float(finished.length[episode]),
            }
            if with_success:
                metrics["episode/success"] = float(finished.success[episode])
                metrics["episode/success_any"] = float(finished.success_any[episode])
            for name, reward in finished.agents.items():
                metrics[f"episode/reward/{name}"] = float(reward[episode])
            yield self.record("episode", clock, metrics)

    def fault_records(
        self, clock: Clock, faults: Sequence[Fault], counts: Mapping[str, int]
    ) -> Iterator[LogRecord]:
        """A record for each failure of a simulator, with the number of those of its cause."""
        for fault in faults:
            metrics = {f"faults/{fault.cause}": float(counts[fault.cause])}
            record = self.record("fault", clock, {**metrics, "faults/row": float(fault.row)})
            yield replace(record, text=fault.message)

    def speed_records(
        self, clock: Clock, levels: Mapping[str, Mapping[str, float]]
    ) -> Iterator[LogRecord]:
        """The progress record, and one for each level that has something to say."""
        seconds = self.training_seconds
        speed = clock.environment_steps / max(seconds, 1e-9)
        yield self.record(
            "progress", clock, {"time/steps_per_second": speed, "time/training_seconds": seconds}
        )
        for name, metrics in levels.items():
            yield self.record("level", clock, metrics, level=name)

    def state_dict(self) -> State:
        """Everything but the interval, which belongs to the parameters."""
        return {name: getattr(self, name) for name in _SAVED}

    def load_state_dict(self, state: State) -> None:
        """Go on from a saved state."""
        for name in _SAVED:
            setattr(self, name, state[name])
        self.go_on()
