"""Settings of a run, receivers of its records, and its result."""

from collections.abc import Callable
from dataclasses import dataclass

from coach_rl.core.errors import require
from coach_rl.core.log_records import Sink
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.runtime import OnActivity, Runtime, ignore_activity
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.graph_managers.callbacks import Callback, CallbackParameters
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import CheckpointParameters
from coach_rl.runs.folder import RunFolder
from coach_rl.sessions.evaluation import FINAL_EPISODES
from coach_rl.telemetry.figures import Best
from coach_rl.telemetry.profiler import Profile
from coach_rl.telemetry.summary import Summary
from coach_rl.telemetry.video import VideoParameters


@parameter_class
class RunSettings:
    """Settings that don't change an experiment's numbers."""

    checkpoints: CheckpointParameters | None = None
    """Policy of its checkpoints: when, and which stay; None: that of its parameters."""
    final_episodes: EnvironmentEpisodes = FINAL_EPISODES
    """Episodes of the evaluation at the end; 0 for none."""
    tensorboard: bool = True
    """If True, TensorBoard files are written."""
    histograms: EnvironmentSteps | None = None
    """Steps from one set of histograms to the next, of parameters, gradients, actions and
    observations, for TensorBoard; None makes none."""
    video: VideoParameters | None = None
    """Settings of videos of its evaluations; None films none."""
    background_evaluation: bool = False
    """If True, evaluations while training run in a process of their own, and training does not wait
    for them. A run that is resumed with pending evaluations does so in any case."""
    profile: bool = False
    """If True, calls are timed, and profile.json and trace.json written at the end."""

    def __post_init__(self) -> None:
        require(
            self.tensorboard or self.histograms is None,
            "histograms are for TensorBoard, which is off; leave out one of them",
        )
        require(
            self.video is None or not self.background_evaluation,
            "background_evaluation and video exclude each other: evaluations are filmed in the "
            "run's own process; leave out one of them",
        )


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The result of a run."""

    folder: RunFolder
    """The run's folder."""
    environment_steps: int
    """Environment steps at the end of the run."""
    ending: str | None
    """Reason why training was over: `solved`, the unit whose count was full, such as `hours`, or
    what a callback gave; None when it was stopped before."""
    solved_at: int | None
    """Environment steps of the evaluation that reached the target; None if none has, or if there
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
    profile: Profile | None = None
    """The time its calls took; None if none was requested."""


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
