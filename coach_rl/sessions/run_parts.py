"""Parts of a run: what takes part in it, such as films of its evaluations, beside training.

    @parameter_class
    class WalkLogParameters(RunPartParameters):
        name: ClassVar[str] = "walks"

        def build(self, settings):
            return WalkLog()

    class WalkLog(RunPart):
        def follow(self, record):
            if record.kind == "evaluation":
                ...

    run_experiment(..., settings=RunSettings(parts=(WalkLogParameters(),)))

A part overrides the methods that it needs; all others do nothing. It changes no number of the run.
The parameters of parts are in `settings`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from coach_rl.core.errors import require
from coach_rl.core.log_records import Kind, LogRecord
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.evaluations import Evaluator
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.watcher import EvaluationWatcher
from coach_rl.runs.folder import RunFolder
from coach_rl.runs.keeper import CheckpointKeeper
from coach_rl.runs.logs import RunSinks, WriteFailures


@dataclass(frozen=True, kw_only=True)
class RunContext:
    """The run that a part takes part in; its graph is built, and its folder exists."""

    graph_manager: GraphManager
    runtime: Runtime
    folder: RunFolder
    keeper: CheckpointKeeper
    """Writes the checkpoints."""
    sinks: RunSinks
    """The receivers of its records."""
    failures: WriteFailures
    """The count of what could not be written, which is among the run's incidents."""
    trust: tuple[str, ...] = ()
    """Modules whose code the run may use, besides those of the user's own runs."""

    def record(
        self, kind: Kind, scalars: Mapping[str, float] | None = None, text: str = ""
    ) -> LogRecord:
        """A record about the whole run, of now."""
        blank = self.graph_manager.evaluations.begins()
        phase = self.graph_manager.graph.clock.phase
        return replace(blank, kind=kind, phase=phase, scalars=scalars or {}, text=text)


@dataclass(frozen=True, kw_only=True)
class Written:
    """A file or folder that a part has written, for the user."""

    what: str
    """A description in a word or two."""
    path: Path
    note: str = ""
    """The rest of the line, after the path."""


@dataclass(frozen=True, kw_only=True)
class PartResult:
    """The result of a part of a run."""

    value: Any = None
    """Its value for a program; None where it has none."""
    tables: tuple[Table, ...] = ()
    """Tables for the user."""
    written: tuple[Written, ...] = ()
    """Files that the part has written."""


class RunPart:
    """Takes part in one run, or in an evaluation of one; a subclass overrides what it needs."""

    watchers: Sequence[EvaluationWatcher] = ()
    """Watchers of its evaluations; set before the graph is built."""
    makes_evaluations: bool = False
    """If True, its `evaluator` makes the evaluations while training."""
    evaluator: Evaluator | None = None
    """The evaluator, while the part is open; None of a part that makes no evaluations."""
    is_rebuilt_elsewhere: bool = False
    """If True, the run is rebuilt in another process, so all its code must be in modules."""

    @contextmanager
    def open(self, run: RunContext) -> Iterator[None]:  # noqa: ARG002 - for those that override it
        """Context around training and the final evaluation, left however the run ends."""
        yield

    def follow(self, record: LogRecord) -> Iterable[LogRecord]:  # noqa: ARG002
        """Records that follow one of the run.

        It is called with each record of training, of the final evaluation and of a roll-back, once
        that is written; not with those about checkpoints, nor with those of other parts.
        """
        return ()

    def evaluated(self, file: Path) -> Iterable[Written]:  # noqa: ARG002
        """Files about an evaluation apart from training, once its own `file` is written."""
        return ()

    def result(self) -> PartResult:
        """Its result, once the run is over."""
        return PartResult()


def require_compatible(parts: Mapping[str, RunPart]) -> None:
    """Raise `ParameterError` where two parts, by their names, exclude each other."""
    evaluating = [name for name, part in parts.items() if part.makes_evaluations]
    watching = [name for name, part in parts.items() if part.watchers]
    require(
        len(evaluating) < 2,
        f"{' and '.join(evaluating)} exclude each other: evaluations are made once; leave out all "
        "but one",
    )
    require(
        not (evaluating and watching),
        f"{', '.join(evaluating)} and {', '.join(watching)} exclude each other: only evaluations "
        "that the run makes itself can be watched; leave out one of them",
    )
