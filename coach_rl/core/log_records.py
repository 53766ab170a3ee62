"""Log records, the only output of a running experiment, and the interface of sinks.

`GraphManager.improve()` yields records, sinks write them. Names of scalars are `room/quantity`;
docs/metrics.md lists them all.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, TypeAlias, TypeVar

from coach_rl.core.clock import Phase
from coach_rl.core.records import Array
from coach_rl.core.steps import EnvironmentSteps, TrainingSteps

Value = TypeVar("Value")
Kind = Literal[
    "phase",
    "level_phase",
    "progress",
    "episode",
    "train",
    "level",
    "signals",
    "fault",
    "evaluation",
    "final_evaluation",
    "checkpoint",
    "checkpoint_failed",
    "gap",
    "roll_back",
    "note",
    "file",
]
"""The subjects of records; metrics.toml has when each is written, and what it carries."""


@dataclass(frozen=True, kw_only=True)
class LogRecord:
    """An event of a run, the run's counters when it happened, and its metrics."""

    kind: str
    """Its subject: one of `Kind`, or one of an extension."""
    phase: Phase
    """The phase in which it happened."""
    environment_steps: int
    """Simulator steps of training and heat-up so far, summed over the parallel environments."""
    training_steps: int
    """Gradient updates so far, summed over the levels."""
    episodes: int
    """Finished training episodes so far."""
    wall_seconds: float
    """Seconds since the run's iterator started, earlier parts of a resumed run included."""
    level: str = ""
    """The level it belongs to; empty if it is about the whole graph."""
    agent: str = ""
    """The agent it belongs to; empty if it is about the whole level or graph."""
    scalars: Mapping[str, float] = field(default_factory=dict)
    """Numbers by `room/quantity`; booleans as 0 and 1."""
    text: str = ""
    """A description of the event, in one line; empty if the numbers suffice."""
    arrays: Mapping[str, Array] = field(default_factory=dict)
    """Arrays by `room/quantity`, e.g. an evaluation's `episode/reward`, one entry an episode. Those
    of two axes are histograms, [bins, 3]: left edge, right edge, count."""
    images: Mapping[str, Array] = field(default_factory=dict)
    """Pictures of a note by `room/quantity`, uint8 [H, W] or [H, W, 3]."""
    is_in_files: bool = True
    """False if the run's files leave it out because a long run has too many of its kind."""
    is_in_log: bool = True
    """False if log.jsonl alone leaves it out because its arrays are large."""
    table: str = ""
    """End of the name of its table, where that is not the one of its kind, or of its level and
    agent."""
    problem: str = ""
    """Name of the problem that it reports, such as `fault`, by which problems are counted."""
    columns: Mapping[str, Array] = field(default_factory=dict)
    """Arrays by name that are written to a file of their own, and not into logs."""
    file: str = ""
    """Path of that file in the run's folder, without its ending."""
    unit: type[EnvironmentSteps | TrainingSteps] = EnvironmentSteps
    """Unit in which the run counts its moments: gradient updates where it learns from data."""

    @property
    def moment(self) -> int:
        """The run's progress in its unit, which curves are drawn over and files are named by."""
        return self.unit.counted(self)


@dataclass(frozen=True, kw_only=True)
class Evaluation(LogRecord):
    """The record of an evaluation together with those of its levels."""

    levels: tuple[LogRecord, ...] = ()
    """Statistics of the sub-episodes of each level of a hierarchy, top first."""


AUTO = "auto"
"""Stands for the success rate where success is reported, and for the mean reward elsewhere."""
FILES: Mapping[str, str] = {
    "episode": "episodes",
    "fault": "faults",
    "evaluation": "evaluations",
    "final_evaluation": "final_evaluation",
    "progress": "progress",
    "signals": "signals",
    "gap": "gaps",
    "roll_back": "roll_backs",
    "note": "notes",
}
"""Names of the tables of the records about the whole graph, by kind."""


class Sink(Protocol):
    """A receiver of log records.

    for record in graph_manager.improve():
        sink.write(record)
    sink.close()
    """

    def write(self, record: LogRecord) -> None:
        """Write one record; it survives a kill of the process."""
        ...

    def close(self) -> None:
        """Finish; harmless when repeated."""
        ...


@dataclass(frozen=True, kw_only=True)
class SinkRun:
    """The run whose records a sink takes."""

    folder: Path
    """The run's folder; a resumed run has the same."""
    manifest: Mapping[str, Any]
    """The run's origin: name, seed, parameters, panel, versions; see manifest.json."""
    settings: Mapping[str, Any]
    """Seed, level, preset, panel and parameters by path, as `-cp` has them."""


SinkMaker: TypeAlias = Callable[..., Sink]
"""Called with the `SinkRun`, once its folder is there; a sink's class, or a function."""


class SinkParameters(Protocol):
    """A frozen description of a sink."""

    def check(self) -> None:
        """Raise `ConfigurationError` where the sink cannot work here, before the run begins."""
        ...

    def build(self, run: SinkRun) -> Sink:
        """A new sink; opened again, with the same run, after it has failed."""
        ...


def by_tag(record: LogRecord, values: Mapping[str, Value]) -> dict[str, Value]:
    """Values of a record by the names under which every service shows them.

    An agent's are `<level>/<agent>/...`, so that a hierarchy's levels are shown side by side.
    """
    prefix = "".join(f"{name}/" for name in (record.level, record.agent) if name)
    return {f"{prefix}{name}": value for name, value in values.items()}
