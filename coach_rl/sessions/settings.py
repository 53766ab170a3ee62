"""Settings of a run, receivers of its records, and its result."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from coach_rl.core.errors import require
from coach_rl.core.log_records import Sink
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.runtime import OnActivity, Runtime, ignore_activity
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.graph_managers.callbacks import Callback, CallbackParameters
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import CheckpointParameters, Moments
from coach_rl.runs.folder import RunFolder, facts_of_evaluation
from coach_rl.runs.shown_facts import ShowsFacts
from coach_rl.sessions.run_parts import PartResult, RunPart
from coach_rl.telemetry.figures import Best
from coach_rl.telemetry.summary import Summary

FINAL_EPISODES = EnvironmentEpisodes(20)
"""Episodes of the evaluation at a run's end."""


class RunPartParameters(ABC):
    """Parameters of a part of a run, a `parameter_class`; see `run_parts`."""

    name: ClassVar[str]
    """The name of its result."""

    def check(self, settings: "RunSettings") -> None:  # noqa: B027 # most check nothing
        """Raise `ConfigurationError` where it cannot take part, before anything is built."""

    @abstractmethod
    def build(self, settings: "RunSettings") -> RunPart:
        """A new part, for one run.

        Args:
            settings: The run's settings, with all its parts.
        """

    def join(
        self,
        graph_manager: GraphManager,  # noqa: ARG002 - for those that override it
        folder: RunFolder,  # noqa: ARG002
        *,
        process: str,  # noqa: ARG002
    ) -> Callable[[], None]:
        """Take part in another process, which makes evaluations of the run.

        Args:
            graph_manager: The run's experiment there; its graph is built.
            folder: The run's folder.
            process: The process, in a word.

        Returns:
            Called after each evaluation there.
        """
        return _nothing


@parameter_class
class RunSettings:
    """Settings that don't change an experiment's numbers."""

    checkpoints: CheckpointParameters | None = None
    """Policy of its checkpoints: when, and which stay; None: that of its parameters."""
    final_episodes: EnvironmentEpisodes = FINAL_EPISODES
    """Episodes of the evaluation at the end; 0 for none."""
    tensorboard: bool = True
    """If True, TensorBoard files are written."""
    message: str = ""
    """Purpose of the run, in words, for its manifest; empty: none."""
    parts: tuple[RunPartParameters, ...] = ()
    """Participants in the run, such as films of its evaluations, in the order in which they are
    opened and follow its records. A run that is resumed is given them again."""

    def __post_init__(self) -> None:
        names: set[str] = set()
        for part in self.parts:
            problem = f"RunSettings.parts has '{part.name}' twice; leave out one"
            require(part.name not in names, problem)
            names.add(part.name)


@dataclass(frozen=True, kw_only=True, repr=False)
class RunResult(ShowsFacts):
    """The result of a run."""

    folder: RunFolder
    """The run's folder."""
    length: Moments
    """Its length: environment steps, or gradient updates where it has learned from data alone."""
    environment_steps: int
    """Environment steps at the end of the run."""
    ending: str | None
    """Reason why training was over: `solved`, the unit whose count was full, such as `hours`, or
    what a callback gave; None when it was stopped before."""
    solved_at: int | None
    """Length of the run at the evaluation that reached the target; None if none has, or if there
    is no target."""
    signal: int | None
    """The signal that stopped it; None when it was finished."""
    summary: Summary | None
    """The evaluation at the end and more; None when it was stopped or none was requested."""
    best: Best | None
    """The best evaluation while training; None when there was none."""
    unsaved: str | None = None
    """Reason why the end of the run is in no checkpoint; None when it is, or none was wanted."""
    incidents: tuple[str, ...] = ()
    """Failures that did not end the run, a line each."""
    parts: Mapping[str, PartResult] = field(default_factory=dict)
    """The results of its parts by their names, in the order of its settings."""

    def facts(self) -> Mapping[str, object]:
        """The length of the run and the reason of its end, its scores, and problems."""
        best = self.best
        summary = self.summary
        scalars = {} if summary is None else summary.evaluation.scalars
        final = {name.removeprefix("evaluation/"): value for name, value in scalars.items()}
        return {
            "run": self.folder.path,
            self.length.noun: f"{self.length.count:,}",
            "ending": self.ending,
            "stopped by signal": self.signal,
            "target reached at": self.solved_at and f"{type(self.length)(self.solved_at)}",
            **facts_of_evaluation(final),
            "best evaluation": best and f"{best.value:,.2f} at {best.place}",
            "not saved": self.unsaved,
            "incidents": "; ".join(self.incidents) or None,
        }


@dataclass(frozen=True, kw_only=True)
class Audience:
    """Receivers of a run's records besides its own files."""

    sinks: tuple[Sink, ...] = ()
    """Further receivers of log records; closed by their owners."""
    callbacks: tuple[Callback | CallbackParameters, ...] = ()
    """Further callbacks, after those of the experiment's parameters; not in the manifest, so that a
    resumed run is given them again."""
    on_start: Callable[[GraphManager, Runtime, RunFolder], None] | None = None
    """Called once the graph is built and the folder exists; None for no call."""
    announce: Callable[[str], None] | None = None
    """Called when a signal is taken, inside the signal handler; or None."""
    on_activity: OnActivity = ignore_activity
    """Called with slow activities: compiling, evaluating."""


def _nothing() -> None:
    """The call of a part that does nothing."""
