"""The progress of an experiment, and the log records that report it.

Files of a long run leave out frequent records (`Thinning`): they take the first `WHOLE` records of
a series, every second of the next 2 * `WHOLE`, every fourth of the 4 * `WHOLE` after those, and so
on.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.log_records import Evaluation, LogRecord
from coach_rl.core.records import Array, Fault
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.state import State
from coach_rl.graph_managers.episode_tracker import FinishedEpisodes
from coach_rl.graph_managers.parameters import ScheduleParameters, ValidationParameters

SOLVED = "solved"
"""The reason why training is over where its target was reached."""


FREQUENT = frozenset({"episode", "train", "progress", "level", "signals"})
"""Kinds of records that a long run has many of."""
WHOLE = 5_000
"""Records of a series that files take before they leave out any."""
WORDS = {
    Phase.HEATUP: "acts at random while a level below it warms up",
    Phase.TRAIN: "learns",
    Phase.TEST: "is frozen",
}
"""Words for what a level does in its phase."""


class Progress(Saved):
    """The progress of an experiment beyond the counters of its clock.

    Args:
        schedule: The experiment's; the first evaluation comes an interval after heat-up.
        clock: Phase and counters of training.
        target: The target score; None where there is none.
    """

    SAVED = (
        "has_begun",
        "next_evaluation",
        "announced_at",
        "evaluated_at",
        SavedAttribute("evaluations_report_success", key="evaluations_tell_success"),
        "next_progress",
        "training_seconds",
        "wall_seconds",
        SavedAttribute("solved", varies=True),
        SavedAttribute("stopped", varies=True),
        SavedAttribute("signals", varies=True),
        "_thinning",
    )

    def __init__(
        self,
        schedule: ScheduleParameters,
        clock: Clock,
        target: ValidationParameters | None = None,
    ) -> None:
        self._schedule = schedule
        self._clock = clock
        self._target = target
        self.has_begun = False
        """True if the record of the first phase has been yielded."""
        self.next_evaluation: float | None = None
        """The next evaluation's place, in the unit of the interval; None until heat-up is over, and
        where there are no evaluations."""
        self.announced_at = -1
        """The moment at which the last evaluation was announced; one that was stopped is
        made again, and not announced again."""
        self.evaluated_at = 0
        """The moment of the last evaluation."""
        self.evaluations_report_success = False
        """True if the evaluation environment has ever reported success."""
        self.next_progress = schedule.progress_interval.count
        """The moment at which the next progress record is due."""
        self.training_seconds = 0.0
        """Seconds spent in heat-up and training; evaluation is not counted."""
        self.wall_seconds = 0.0
        """Seconds from the beginning of the run to its last record, pauses left out."""
        self.solved: State | None = None
        """The target, and the moment of the evaluation that reached it; None if none has."""
        self.stopped: State | None = None
        """The reason why a callback has ended training, and the length that was planned then; None
        if none has."""
        self.signals: dict[str, float] = {}
        """The last report of the signals."""
        self.is_settled = True
        """True if all records of the last tick have been yielded.

        A state saved while this is false is as good, but the run that continues from it does not
        yield the records that were pending."""
        self.added: list[Callable[[], LogRecord]] = []
        """Makers of records that callbacks add while a tick lasts. They are called when it is over,
        and their records come before its others."""
        self.wants_checkpoint = False
        """True if a callback has requested a checkpoint; reset by the session that writes it."""
        self._thinning = Thinning()
        self.start_timer()

    def start_timer(self) -> None:
        """Count seconds from here: the run begins, or continues after a pause."""
        self._since = time.perf_counter() - self.wall_seconds

    def seconds_at(self, moment: float) -> float:
        """Seconds from the beginning of the run to a moment of `perf_counter`, without pauses."""
        return moment - self._since

    @property
    def solved_at(self) -> int | None:
        """The moment of the first evaluation that reached the target; None if none has."""
        return None if self.solved is None else int(self.solved["environment_steps"])

    @property
    def moment(self) -> int:
        """The count that identifies a moment, in the unit of the source."""
        return self._schedule.progress_interval.counted(self._clock)

    def request_checkpoint(self) -> None:
        """Request a checkpoint of this moment that is kept; for callbacks."""
        self.wants_checkpoint = True

    def stop(self, reason: str) -> None:
        """End training; the first reason counts."""
        if self.stopped is None:
            self.stopped = {"reason": reason, "planned": self._planned}

    @property
    def _planned(self) -> str:
        return f"{self._schedule.training}, {self._schedule.stop_after}"

    @property
    def ending(self) -> str | None:
        """The reason why training is over; None if it isn't.

        The reason given to `stop`, `solved`, or the unit whose count is full, such as `hours`.
        """
        schedule = self._schedule
        clock = self._clock
        if self.stopped is not None:
            return str(self.stopped["reason"])
        if schedule.until_solved and self.solved is not None:
            return SOLVED
        if schedule.training.is_reached(clock):
            return schedule.training.noun
        if schedule.stop_after is not None and schedule.stop_after.is_reached(clock):
            return schedule.stop_after.noun
        return None

    def begin_training(self) -> None:
        """Count the intervals between evaluations from here: heat-up is over."""
        interval = self._schedule.evaluation_interval
        heatup = self._schedule.heatup
        if interval is not None and self.next_evaluation is None:
            is_same_unit = type(interval) is type(heatup)
            begin = heatup.count if is_same_unit else interval.counted(self._clock)
            self.next_evaluation = begin + interval.count

    def is_evaluation_due(self) -> bool:
        """Return whether an interval between evaluations is over, and none was made since."""
        interval = self._schedule.evaluation_interval
        if interval is None or self.next_evaluation is None:
            return False
        is_over = interval.counted(self._clock) >= self.next_evaluation
        return is_over and self.moment != self.evaluated_at

    def note_evaluated(self) -> None:
        """Count an evaluation made or requested here; the next is due an interval later."""
        interval = self._schedule.evaluation_interval
        while self.is_evaluation_due():
            assert interval is not None
            assert self.next_evaluation is not None
            self.next_evaluation += interval.count
        self.evaluated_at = self.moment

    def note_result(self, evaluation: Evaluation) -> None:
        """Record whether an evaluation while training has reached the target."""
        target = self._target
        if target is not None and self.solved is None and target.is_reached(evaluation.scalars):
            self.solved = {**target.wanted(), "environment_steps": evaluation.moment}

    def is_due(self) -> bool:
        """Return whether a progress record is due; if so, the next one is due an interval later."""
        is_due = self.moment >= self.next_progress
        while self.next_progress <= self.moment:
            self.next_progress += self._schedule.progress_interval.count
        return is_due

    def record(
        self,
        kind: str,
        metrics: Mapping[str, float] | None = None,
        *,
        clock: Clock | None = None,
        phase: Phase | None = None,
        level: str = "",
        agent: str = "",
        arrays: Mapping[str, Array] | None = None,
        is_frequent: bool = False,
    ) -> LogRecord:
        """A record of this moment.

        Args:
            kind: Its subject.
            metrics: Numbers; None for none.
            clock: Phase and counters; None: those of now.
            phase: Where it isn't the clock's.
            level: The level it belongs to.
            agent: The agent it belongs to.
            arrays: Arrays; None for none.
            is_frequent: Whether a long run has many of its kind; those of `FREQUENT` are.
        """
        self.wall_seconds = time.perf_counter() - self._since
        clock = clock or self._clock
        is_in_files = True
        scalars = metrics or {}
        if (is_frequent or kind in FREQUENT) and phase is None:
            stride, is_in_files = self._thinning.stride(f"{kind}/{level}/{agent}")
            if stride > 1:
                scalars = {**scalars, "log/thinned": float(stride)}
        return LogRecord(
            kind=kind,
            phase=phase or clock.phase,
            environment_steps=clock.environment_steps,
            training_steps=clock.training_steps,
            episodes=clock.episodes,
            wall_seconds=self.wall_seconds,
            level=level,
            agent=agent,
            scalars=scalars,
            arrays=arrays or {},
            is_in_files=is_in_files,
            unit=type(self._schedule.progress_interval),
        )

    def take_added(self) -> Iterator[LogRecord]:
        """The records that callbacks have added in the tick that is over; they are removed."""
        added = self.added
        self.added = []
        for make in added:
            yield make()

    def settling(self, records: Sequence[LogRecord]) -> Iterator[LogRecord]:
        """The records of one moment; the run is settled when the last has left."""
        for number, record in enumerate(records, start=1):
            self.is_settled = number == len(records)
            yield record

    def episode_records(
        self, finished: FinishedEpisodes, *, with_success: bool
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
            yield self.record("episode", metrics)

    def fault_records(
        self, faults: Sequence[Fault], counts: Mapping[str, int]
    ) -> Iterator[LogRecord]:
        """A record for each failure of a simulator, with the number of those of its cause so far.

        Args:
            faults: The failures of a tick.
            counts: Their number by cause, these included.
        """
        to_come = Counter(fault.cause for fault in faults)
        for fault in faults:
            to_come[fault.cause] -= 1
            number = float(counts[fault.cause] - to_come[fault.cause])
            metrics = {f"faults/{fault.cause}": number, "faults/row": float(fault.row)}
            yield replace(self.record("fault", metrics), text=fault.message)

    def speed_records(
        self,
        levels: Mapping[str, Mapping[str, float]],
        own: Mapping[str, float],
    ) -> Iterator[LogRecord]:
        """The progress record, and one for each level that has metrics.

        Args:
            levels: Metrics by level.
            own: Metrics of the training stack itself.
        """
        seconds = self.training_seconds
        speed = self.moment / max(seconds, 1e-9)
        times = {"time/steps_per_second": speed, "time/training_seconds": seconds}
        yield self.record("progress", {**times, **own})
        for name, metrics in levels.items():
            yield self.record("level", metrics, level=name)

    def level_phase_records(self, changed: Mapping[str, Phase]) -> Iterator[LogRecord]:
        """A record for each level whose phase has changed to this one, by the level's name."""
        for name, phase in changed.items():
            record = self.record("level_phase", phase=phase, level=name)
            yield replace(record, text=f"level '{name}' {WORDS[phase]}")

    def signal_records(self, metrics: Mapping[str, float]) -> Iterator[LogRecord]:
        """A record of the signals since the last, where there are any."""
        if metrics:
            self.signals = dict(metrics)
            yield self.record("signals", metrics)

    def note_loaded(self) -> None:
        """Drop what no longer holds: another target was solved, or another length was stopped."""
        self.added = []  # of a tick that was not completed
        if self.solved is not None:
            target = {} if self._target is None else self._target.wanted()
            is_same = target.items() <= self.solved.items()
            self.solved = self.solved if target and is_same else None
        if self.stopped is not None and self.stopped["planned"] != self._planned:
            self.stopped = None  # the planned length has changed
        self.start_timer()


class Thinning(Saved):
    """Counts the records of each series: those of one kind, level and agent."""

    SAVED = (SavedAttribute("_counts", inline=True, varies=True),)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def stride(self, series: str) -> tuple[int, bool]:
        """Count the next record of a series.

        Returns:
            Number of records of which files take one, and whether they take this one.
        """
        number = self._counts.get(series, 0)
        self._counts[series] = number + 1
        doublings = (number // WHOLE + 1).bit_length() - 1
        return 1 << doublings, number % (1 << doublings) == 0
