"""Running an experiment: the consumer of `GraphManager.improve()`, usable without any command line.

    result = run_experiment(graph_manager, TaskParameters(seed=1), name="cartpole")
    result = resume_experiment(result.folder.path, steps=EnvironmentSteps(200_000))

It writes what the run says into the run's folder, keeps checkpoints, stops where it was asked to,
and closes with an evaluation of its own.
"""

import re
import signal
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path

from coach_rl.core.activity import OnActivity, ignore_activity
from coach_rl.core.errors import (
    CheckpointError,
    CoachWarning,
    ConfigurationError,
    DivergedError,
    RunError,
)
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.experiment.checkpoint import (
    UNFINISHED,
    Checkpoint,
    find_checkpoint,
    list_checkpoints,
    read_checkpoint,
)
from coach_rl.experiment.checkpoint_keeper import (
    Best,
    CheckpointKeeper,
    Reason,
    require_same_seed,
)
from coach_rl.experiment.evaluation import (
    FINAL_EPISODES,
    Videos,
    evaluation_json,
    final_evaluation,
    live_graph,
)
from coach_rl.experiment.loaded_levels import load_levels
from coach_rl.experiment.manifest import Origin, made_with, make_manifest, now, rebuild
from coach_rl.experiment.overrides import apply_overrides
from coach_rl.experiment.parameters_json import encode
from coach_rl.experiment.roll_back import with_new_randomness
from coach_rl.experiment.run_folder import (
    RunFolder,
    check_name,
    create_run_folder,
    cut_event_files,
    cut_logs,
    find_run,
)
from coach_rl.experiment.run_lock import locked
from coach_rl.experiment.run_sinks import RunSinks, trouble
from coach_rl.experiment.stop_requests import Interrupted, StopRequests
from coach_rl.experiment.strict_json import plain_json, write_json
from coach_rl.graph_managers.evaluating import EvaluationStopped
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.task import TaskParameters, resolved_device
from coach_rl.telemetry.csv import CsvSink
from coach_rl.telemetry.jsonl import JsonlSink
from coach_rl.telemetry.records import Kind, LogRecord
from coach_rl.telemetry.resources import ResourceSampler
from coach_rl.telemetry.sinks import Sink
from coach_rl.telemetry.summary import Summary
from coach_rl.telemetry.tensorboard import TensorBoardSink
from coach_rl.telemetry.video import VideoParameters

DEFAULT_ROOT = Path("experiments")
"""The folder of all experiments."""

EVALUATION_REWARD = "evaluation/reward_mean"
"""The scalar by which evaluations are compared."""


@parameter_class
class RunSettings:
    """Settings that don't change an experiment's numbers."""

    checkpoint_seconds: Positive[float] | None = None
    """Seconds between checkpoints that are kept besides best and last; None for none."""
    checkpoint_memories: bool = True
    """If False, replay memories are left out of checkpoints: a run that is resumed from one fills
    them anew before it learns again, and is not exact."""
    final_episodes: EnvironmentEpisodes = FINAL_EPISODES
    """Episodes of the evaluation at the end; 0 for none."""
    tensorboard: bool = True
    """If True, TensorBoard files are written."""
    video: VideoParameters | None = None
    """Settings of a video of every evaluation; None films none."""


@dataclass(frozen=True, kw_only=True)
class RunResult:
    """The result of a run."""

    folder: RunFolder
    """The run's folder."""
    environment_steps: int
    """Environment steps at the end of the run."""
    signal: int | None
    """The signal that stopped it; None when it was finished."""
    summary: Summary | None
    """The evaluation at the end and more; None when it was stopped or none was asked for."""
    best: Best | None
    """The best evaluation while training; None when there was none."""
    unsaved: str | None = None
    """Why the end of the run is in no checkpoint; None when it is in one."""
    incidents: tuple[str, ...] = ()
    """What went wrong without ending the run, a line each."""


@dataclass(frozen=True, kw_only=True)
class Audience:
    """Receivers of a run's records besides its own files."""

    sinks: tuple[Sink, ...] = ()
    """Further takers of log records; closed by whoever made them."""
    on_start: Callable[[GraphManager, TaskParameters, RunFolder], None] | None = None
    """Called once the graph is built and the folder exists; None for nobody to call."""
    announce: Callable[[str], None] | None = None
    """Called when a signal is taken, inside the signal handler; or None."""
    on_activity: OnActivity = ignore_activity
    """Called with what takes long: compiling, evaluating."""


def run_experiment(
    graph_manager: GraphManager,
    task: TaskParameters | None = None,
    *,
    name: str,
    root: Path = DEFAULT_ROOT,
    origin: Origin | None = None,
    settings: RunSettings | None = None,
    audience: Audience | None = None,
) -> RunResult:
    """Run an experiment from its beginning, in a new run folder.

    The folder is made only after the graph is built, so a wrong parameter leaves nothing behind.
    The graph manager is closed at the end, whatever happens.

    Args:
        graph_manager: What to run; its graph is not yet created.
        task: Seed, device, threads and precision; None takes their defaults.
        name: The experiment's name, the folder above the run's.
        root: The folder of all experiments.
        origin: Where the experiment came from; None when from nowhere but this call.
        settings: How to run it; None takes the defaults.
        audience: Receivers of its records besides the run's files; None for none.

    Raises:
        ConfigurationError: The experiment cannot be built or saved, or its parameters cannot be
            recorded.
        RunError: Something went wrong while running.
    """
    task, settings, audience = (
        task or TaskParameters(),
        settings or RunSettings(),
        audience or Audience(),
    )
    task = replace(task, device=resolved_device(task.device))
    check_name(name)
    _require_what_rolls_back(graph_manager, settings)
    videos = _videos(graph_manager, settings)
    stop = StopRequests(audience.announce)
    on_activity = stop.following(audience.on_activity)
    with stop, live_graph(graph_manager, task, on_activity=on_activity):
        graph_manager.require_savable()
        loaded = load_levels(graph_manager)
        manifest = make_manifest(graph_manager, task, name=name, origin=origin or Origin())
        manifest["loaded"] = loaded
        folder = create_run_folder(root, name, manifest, origin.preset if origin else None)
        with locked(folder.path):
            keeper = _keeper(graph_manager, task, folder, settings)
            return _Run(
                graph_manager, task, folder, settings, audience, stop, keeper, videos, None
            ).go()


def resume_experiment(
    run: Path,
    *,
    steps: EnvironmentSteps | None = None,
    device: str | None = None,
    threads: int | None = None,
    command: Sequence[str] = (),
    settings: RunSettings | None = None,
    audience: Audience | None = None,
) -> RunResult:
    """Go on with a run in its folder, from its last checkpoint or the one named.

    What the run wrote after that checkpoint, log lines and later checkpoints, is dropped, because
    it will be written again. A run that was killed before its first checkpoint starts anew; one
    whose checkpoints have been deleted is refused.

    Args:
        run: A run's folder, or one of its checkpoints (`RUN/checkpoints/step_2048`, `.../best`).
        steps: Environment steps to train to, in all; None keeps the run's own plan.
        device: Where to run from now on; None keeps the run's own.
        threads: Threads of one tensor operation on the CPU from now on; None keeps the run's own.
            Another number changes the numbers, which a `CoachWarning` says.
        command: The command line, for the manifest.
        settings: How to run it; None takes the defaults.
        audience: Receivers of its records besides the run's files; None for none.

    Raises:
        ConfigurationError: There is nothing to continue with, or nothing left to do.
        CheckpointError: The manifest or the checkpoint cannot be read, or all have been deleted.
    """
    settings, audience = settings or RunSettings(), audience or Audience()
    folder, path = find_run(run)
    graph_manager, task, manifest = rebuild(folder, device, threads=threads)
    graph_manager = graph_manager if steps is None else _with_training(graph_manager, steps)
    checkpoint = None if path is None else read_checkpoint(path)
    if checkpoint is not None:
        require_same_seed(checkpoint, task.seed)
    _require_what_rolls_back(graph_manager, settings)
    videos = _videos(graph_manager, settings)
    stop = StopRequests(audience.announce)
    on_activity = stop.following(audience.on_activity)
    with stop, live_graph(graph_manager, task, on_activity=on_activity), locked(folder.path):
        graph_manager.require_savable()
        keeper = _keeper(graph_manager, task, folder, settings)
        if checkpoint is None:
            _require_never_saved(folder)
            load_levels(graph_manager, manifest)
        else:
            graph_manager.load_state_dict(checkpoint.state)
            _warn_of_missing_memories(checkpoint)
            summarised = folder.summary.exists()
            _require_work(graph_manager, checkpoint.path, may_conclude=not (steps or summarised))
        keeper.restore(checkpoint)
        _cut_back(folder, checkpoint)
        folder.summary.unlink(missing_ok=True)
        start = None if checkpoint is None else checkpoint.path.name
        manifest["resumes"].append(
            {"time": now(), "command": list(command), "from": start, **made_with()}
        )
        manifest |= {"parameters": encode(graph_manager.parameters), "task": encode(task)}
        write_json(folder.manifest, manifest)
        done = None if checkpoint is None else graph_manager.clock.environment_steps
        return _Run(
            graph_manager, task, folder, settings, audience, stop, keeper, videos, done
        ).go()


@dataclass
class _Run:
    """A run whose graph is built and whose folder exists."""

    graph_manager: GraphManager
    task: TaskParameters
    folder: RunFolder
    settings: RunSettings
    audience: Audience
    stop: StopRequests
    keeper: CheckpointKeeper
    videos: Videos | None
    saved_at: int | None
    """Environment steps of the newest checkpoint; None where there is none."""
    failures: dict[str, int] = field(default_factory=dict)
    """How often something could not be written, by what."""
    unsaved: str | None = None
    """Why the last attempt at a checkpoint failed; None if it did not."""

    def go(self) -> RunResult:
        """Train to the end or to a stop, save, evaluate."""
        if self.audience.on_start is not None:
            self.audience.on_start(self.graph_manager, self.task, self.folder)
        summary = None
        sinks = RunSinks(self.folder.path, self._files(), self.audience.sinks)
        with closing(sinks), self.stop.patient():
            try:
                while not self._is_trained(sinks):
                    pass
                if self.stop.signal is None and self.settings.final_episodes.count > 0:
                    summary = self._summarise(sinks)
            except RunError as error:
                raise type(error)(f"{error}. {self._progress_and_checkpoint()}") from error
            except KeyboardInterrupt as error:
                number = getattr(error, "signal", signal.SIGINT)
                message = f"interrupted. {self._progress_and_checkpoint()}"
                raise Interrupted(message, signal=number) from None
        return RunResult(
            folder=self.folder,
            environment_steps=self.graph_manager.clock.environment_steps,
            signal=self.stop.signal if summary is None else None,
            summary=summary,
            best=self.keeper.best,
            unsaved=self.unsaved,
            incidents=self._incidents(sinks),
        )

    def _is_trained(self, sinks: RunSinks) -> bool:
        """Train to the end or to a stop; False if the run diverged and has been rolled back."""
        try:
            self._train(sinks)
        except DivergedError as error:
            most = self.graph_manager.parameters.divergence.most_roll_backs
            is_left = self.graph_manager.clock.roll_backs < most
            can_go_back = is_left and list_checkpoints(self.folder.checkpoints)
            if not (_rolls_back(self.graph_manager) and can_go_back):
                raise
            self._roll_back(sinks, error)
            return False
        return True

    def _roll_back(self, sinks: RunSinks, error: DivergedError) -> None:
        """Go back to the last checkpoint, as a resumed run does, with other random numbers."""
        graph_manager, clock = self.graph_manager, self.graph_manager.clock
        attempt, done = clock.roll_backs + 1, clock.environment_steps
        checkpoint = read_checkpoint(find_checkpoint(self.folder.checkpoints))
        sinks.close()
        self.keeper.restore(checkpoint)
        _cut_back(self.folder, checkpoint)
        state = with_new_randomness(checkpoint.state, seed=self.task.seed, attempt=attempt)
        graph_manager.load_state_dict(state)
        clock.roll_backs = attempt
        most = graph_manager.parameters.divergence.most_roll_backs
        warnings.warn(
            f"{error}. Rolled back from {done:,} environment steps to {checkpoint.path.name}, with "
            f"new random numbers ({attempt} of {most} times)",
            CoachWarning,
            stacklevel=2,
        )
        scalars = {"divergence/environment_steps": float(done), "divergence/roll_backs": attempt}
        sinks.write(self._record("roll_back", scalars))

    def _train(self, sinks: RunSinks) -> None:
        resources, stop = ResourceSampler(), self.stop
        is_going_on = is_saved = True
        while is_going_on:
            for record in self.graph_manager.improve(
                is_stopped=stop.is_requested, is_paused=stop.wants_checkpoint
            ):
                sinks.write(_with_resources(record, resources))
                if self.videos is not None and record.kind == "evaluation":
                    self._film(f"step_{record.environment_steps}")
                is_saved = self.graph_manager.is_settled and self._save_if_due(record, sinks)
                if stop.is_requested() and self.graph_manager.is_settled:
                    break
            is_going_on = stop.take_checkpoint_request() and not stop.is_requested()
            done = self.graph_manager.clock.environment_steps
            if not is_saved or self.saved_at != done:
                self._save("last", sinks)

    def _save_if_due(self, record: LogRecord, sinks: RunSinks) -> bool:
        if record.kind == "evaluation" and self.keeper.is_best(record.scalars[EVALUATION_REWARD]):
            self._save("best", sinks, record.scalars[EVALUATION_REWARD])
        elif (reason := self.keeper.due()) is not None:
            self._save(reason, sinks)
        elif _rolls_back(self.graph_manager) and not list_checkpoints(self.folder.checkpoints):
            self._save("last", sinks)  # to have something to go back to
        else:
            return False
        return True

    def _save(self, reason: Reason, sinks: RunSinks, reward: float | None = None) -> None:
        """Say it, then do it, so that the line is among those the checkpoint keeps.

        Where it cannot be written the run goes on, and tries again when the next one is due.
        """
        clock = self.graph_manager.clock
        scalars = {"checkpoint/best": float(reason == "best")}
        said = self._record("checkpoint", scalars)
        sinks.write(said)
        try:
            if not self.folder.manifest.exists():
                raise CheckpointError("the run's folder has lost its manifest")
            self.keeper.save(reason, clock.environment_steps, reward)
        except CheckpointError as error:
            self.unsaved = f"the checkpoint at {clock.environment_steps:,} environment steps: "
            self.unsaved += trouble(error, self.folder.path)
            self._note_failure("checkpoints", self.unsaved)
            sinks.write(replace(said, kind="checkpoint_failed"))
        else:
            self.saved_at, self.unsaved = clock.environment_steps, None

    def _film(self, name: str) -> None:
        """Write the film of the last evaluation; a run goes on without it."""
        assert self.videos is not None
        try:
            self.videos.write(self.folder.videos / name)
        except Exception as error:  # of whatever library encodes it
            what = f"the video {name}: {trouble(error, self.folder.path)}"
            self._note_failure("videos", what)

    def _note_failure(self, what: str, message: str) -> None:
        """Count what could not be written; the first of a kind is said."""
        if what not in self.failures:
            warnings.warn(f"cannot write {message}; the run goes on", CoachWarning, stacklevel=2)
        self.failures[what] = self.failures.get(what, 0) + 1

    def _incidents(self, sinks: RunSinks) -> tuple[str, ...]:
        clock = self.graph_manager.clock
        counted = {
            "updates skipped, for numbers that were not finite": clock.skipped_updates,
            "roll-backs, after the run had diverged": clock.roll_backs,
            **{f"{what} that could not be written": count for what, count in self.failures.items()},
        }
        return (*(f"{what}: {n:,}" for what, n in counted.items() if n), *sinks.incidents)

    def _record(self, kind: Kind, scalars: Mapping[str, float]) -> LogRecord:
        """A record about the whole run, of now."""
        blank = self.graph_manager.evaluation_begins()
        phase = self.graph_manager.clock.phase
        return replace(blank, kind=kind, phase=phase, scalars=scalars)

    def _progress_and_checkpoint(self) -> str:
        """Return the progress of the run, and the checkpoint that remains of it."""
        checkpoints = self.folder.checkpoints
        kept = (
            f"its last checkpoint, {find_checkpoint(checkpoints)}, was written before"
            if list_checkpoints(checkpoints)
            else "it had written no checkpoint"
        )
        done = self.graph_manager.clock.environment_steps
        return f"The run had done {done} environment steps; {kept}"

    def _summarise(self, sinks: RunSinks) -> Summary | None:
        """The final evaluation, also written into the run's folder; None where it was stopped."""
        sinks.write(self.graph_manager.evaluation_begins())
        try:
            evaluation = final_evaluation(
                self.graph_manager,
                self.task,
                self.settings.final_episodes,
                is_stopped=self.stop.is_requested,
            )
        except EvaluationStopped:
            return None
        for record in (*evaluation.levels, evaluation):
            sinks.write(_as_final(record))
        if self.videos is not None:
            self._film(f"step_{evaluation.environment_steps}_final")
        checkpoints, best = self.folder.checkpoints, self.keeper.best
        seconds = self.graph_manager.training_seconds
        summary = Summary(
            evaluation=evaluation,
            steps_per_second=evaluation.environment_steps / seconds if seconds else 0.0,
            best_checkpoint=None if best is None else f"{checkpoints.name}/{best.checkpoint}",
            last_checkpoint=(
                f"{checkpoints.name}/{find_checkpoint(checkpoints).name}"
                if list_checkpoints(checkpoints)
                else None
            ),
            incidents=self._incidents(sinks),
        )
        document = {
            "created": now(),
            "seed": self.task.seed,
            **summary.as_json(),
            "best_evaluation": None if best is None else vars(best),
            "evaluated_episodes": evaluation_json(evaluation)["episodes"],
        }
        try:
            write_json(self.folder.summary, plain_json(document))
        except OSError as error:
            self._note_failure("summaries", f"the summary: {trouble(error, self.folder.path)}")
        return summary

    def _files(self) -> dict[str, Callable[[], Sink]]:
        """What makes the sinks that write into the run's folder."""
        folder, clock = self.folder.path, self.graph_manager.clock
        files: dict[str, Callable[[], Sink]] = {
            "log.jsonl": lambda: JsonlSink(folder / "log.jsonl"),
            "the CSV files": lambda: CsvSink(folder),
        }
        if self.settings.tensorboard:
            files["TensorBoard's file"] = lambda: TensorBoardSink(
                folder, resumed_at=clock.environment_steps or None
            )
        return files


def _keeper(
    graph_manager: GraphManager, task: TaskParameters, folder: RunFolder, settings: RunSettings
) -> CheckpointKeeper:
    return CheckpointKeeper(
        folder,
        graph_manager.state_dict,
        period_seconds=settings.checkpoint_seconds,
        seed=task.seed,
        memories=settings.checkpoint_memories,
    )


def _cut_back(folder: RunFolder, checkpoint: Checkpoint | None) -> None:
    """Drop what the logs say after a checkpoint, or everything where there is none."""
    notes = {"logs": {}, "event_files": {}} if checkpoint is None else checkpoint.notes
    cut_logs(folder.path, notes["logs"])
    if "event_files" in notes:  # not in checkpoints of earlier versions, whose files stay as is
        cut_event_files(folder.path, notes["event_files"])


def _videos(graph_manager: GraphManager, settings: RunSettings) -> Videos | None:
    return None if settings.video is None else Videos(graph_manager, settings.video)


def _rolls_back(graph_manager: GraphManager) -> bool:
    return graph_manager.parameters.divergence.response == "roll_back"


def _require_what_rolls_back(graph_manager: GraphManager, settings: RunSettings) -> None:
    if _rolls_back(graph_manager) and not settings.checkpoint_memories:
        raise ConfigurationError(
            "divergence.response='roll_back' needs replay memories in the checkpoints it goes back "
            "to; leave checkpoint_memories on, or use 'skip' or 'stop'"
        )


def _with_training(graph_manager: GraphManager, steps: EnvironmentSteps) -> GraphManager:
    changed = apply_overrides(graph_manager.parameters, {"schedule.training": steps})
    return type(graph_manager)(changed)


def _require_work(graph_manager: GraphManager, checkpoint: Path, *, may_conclude: bool) -> None:
    """Refuse a run that is over; one that was stopped before its last evaluation may conclude."""
    done = graph_manager.clock.environment_steps
    planned = graph_manager.parameters.schedule.training.count
    if done >= planned and not may_conclude:
        raise ConfigurationError(
            f"nothing left to train: {checkpoint.name} has done {done} of {planned} environment "
            f"steps; give a total above {done} with --steps"
        )


def _warn_of_missing_memories(checkpoint: Checkpoint) -> None:
    if not checkpoint.has_memories:
        warnings.warn(
            f"{checkpoint.path.name} was saved without replay memories, so the resumed run is not "
            "exact: its agents act with what they have learned, and learn again once their "
            "memories hold learning.learning_starts transitions",
            CoachWarning,
            stacklevel=3,
        )


def _require_never_saved(folder: RunFolder) -> None:
    """Refuse to begin anew, which drops the logs, where the run did have checkpoints.

    One that was killed while it wrote its first has announced it, and left a part of it behind.
    """
    log = folder.path / "log.jsonl"
    is_announced = log.exists() and re.search(r'"kind": ?"checkpoint"', log.read_text())
    if is_announced and not list(folder.checkpoints.glob(UNFINISHED)):
        raise CheckpointError(
            f"all checkpoints of the run {folder.path} have been deleted, so it cannot be resumed; "
            "start a new run, or delete its log.jsonl to begin this one anew"
        )


def _with_resources(record: LogRecord, resources: ResourceSampler) -> LogRecord:
    """A progress record also says what the run takes of the machine, every few seconds."""
    if record.kind != "progress" or not (taken := resources.sample_if_due()):
        return record
    return replace(record, scalars={**record.scalars, **taken})


def _as_final(record: LogRecord) -> LogRecord:
    """A record of the final evaluation under names of its own: its starts are not those before."""
    kind: Kind = "final_evaluation" if record.kind == "evaluation" else record.kind
    scalars = {f"final_{name}": value for name, value in record.scalars.items()}
    return replace(record, kind=kind, scalars=scalars)
