"""Running an experiment: the consumer of `GraphManager.improve()`, usable without any command line.

    result = run_experiment(graph_manager, TaskParameters(seed=1), name="cartpole")
    result = resume_experiment(result.folder.path, steps=EnvironmentSteps(200_000))

It writes what the run says into the run's folder, keeps checkpoints, stops where it was asked to,
and closes with an evaluation of its own.
"""

import math
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from coach_rl.core.activity import OnActivity, ignore_activity
from coach_rl.core.errors import CheckpointError, CoachWarning, RunError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.experiment.best_evaluation import Best
from coach_rl.experiment.checkpoint import (
    BEST,
    LAST,
    POINTERS,
    UNFINISHED,
    Checkpoint,
    find_checkpoint,
    list_checkpoints,
    pointed,
    read_checkpoint,
)
from coach_rl.experiment.checkpoint_keeper import (
    CheckpointKeeper,
    Reason,
    require_same_seed,
)
from coach_rl.experiment.disk_space import check_disk_space
from coach_rl.experiment.evaluation import (
    FINAL_EPISODES,
    Videos,
    evaluation_json,
    final_evaluation,
    live_graph,
)
from coach_rl.experiment.evidence import write_evidence
from coach_rl.experiment.loaded_levels import load_levels
from coach_rl.experiment.manifest import Origin, made_with, make_manifest, now, rebuild
from coach_rl.experiment.parameters_json import encode
from coach_rl.experiment.resuming import require_work, with_changes
from coach_rl.experiment.run_folder import (
    RunFolder,
    check_name,
    create_run_folder,
    cut_event_files,
    cut_logs,
    find_run,
    locked,
)
from coach_rl.experiment.spaces_json import spaces_to_json
from coach_rl.experiment.stop_requests import StopRequests
from coach_rl.experiment.strict_json import Json, plain_json, write_json
from coach_rl.graph_managers.checkpoint_parameters import CheckpointParameters
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


@parameter_class
class RunSettings:
    """Settings that don't change an experiment's numbers."""

    checkpoints: CheckpointParameters | None = None
    """When it saves itself and which checkpoints stay; None: as its own parameters say."""
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
    ending: str | None
    """Why training was over: `solved`, or the unit whose count was full, such as `hours`; None
    when it was stopped before."""
    solved_at: int | None
    """Environment steps of the evaluation that reached the target; None if none has, or if there
    is no target."""
    signal: int | None
    """The signal that stopped it; None when it was finished."""
    summary: Summary | None
    """The evaluation at the end and more; None when it was stopped or none was asked for."""
    best: Best | None
    """The best evaluation while training; None when there was none."""


@dataclass(frozen=True, kw_only=True)
class Audience:
    """Receivers of a run's records besides its own files."""

    sinks: tuple[Sink, ...] = ()
    """Further takers of log records; closed by whoever made them."""
    on_start: Callable[[GraphManager, TaskParameters, RunFolder], None] | None = None
    """Called once the graph is built and the folder exists; None for nobody to call."""
    announce: Callable[[str], None] | None = None
    """Called when a first Ctrl-C or SIGTERM is taken, inside the signal handler; or None."""
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
    videos = _videos(graph_manager, settings)
    with live_graph(graph_manager, task, on_activity=audience.on_activity):
        policy = _policy(graph_manager, settings)
        loaded = load_levels(graph_manager)
        manifest = make_manifest(graph_manager, task, name=name, origin=origin or Origin())
        manifest["parameters"]["checkpoints"] = encode(policy)
        manifest |= {"loaded": loaded, "spaces": spaces_to_json(graph_manager.spaces)}
        _check_disk_space(graph_manager, root / name, policy)
        folder = create_run_folder(root, name, manifest, origin.preset if origin else None)
        with locked(folder.path):
            keeper = CheckpointKeeper(
                folder, graph_manager.state_dict, policy=policy, seed=task.seed
            )
            return _Run(graph_manager, task, folder, settings, audience, keeper, videos).go()


def resume_experiment(
    run: Path,
    *,
    steps: EnvironmentSteps | None = None,
    changes: Mapping[str, object] | None = None,
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
        changes: Other parameters from now on, by path: see `resuming.CHANGEABLE`; None changes
            nothing.
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
    changes = {**(changes or {}), **({} if steps is None else {"schedule.training": steps})}
    graph_manager, task, manifest = rebuild(folder, device, threads=threads)
    graph_manager = with_changes(graph_manager, changes) if changes else graph_manager
    checkpoint = None if path is None else read_checkpoint(path)
    if checkpoint is not None:
        require_same_seed(checkpoint, task.seed)
    videos = _videos(graph_manager, settings)
    with live_graph(graph_manager, task, on_activity=audience.on_activity), locked(folder.path):
        policy = _policy(graph_manager, settings)
        keeper = CheckpointKeeper(folder, graph_manager.state_dict, policy=policy, seed=task.seed)
        if checkpoint is None:
            _require_never_saved(folder, manifest)
            load_levels(graph_manager, manifest)
        else:
            graph_manager.load_state_dict(checkpoint.state)
            _warn_of_missing_memories(checkpoint)
            summarised = folder.summary.exists()
            require_work(graph_manager, checkpoint.path, may_conclude=not (changes or summarised))
        _check_disk_space(graph_manager, folder.checkpoints, policy)
        keeper.restore(checkpoint)
        _cut_back(folder, checkpoint)
        folder.summary.unlink(missing_ok=True)
        start = None if checkpoint is None else checkpoint.path.name
        manifest["resumes"].append(
            {"time": now(), "command": list(command), "from": start, **made_with()}
        )
        manifest |= {"parameters": encode(graph_manager.parameters), "task": encode(task)}
        manifest["parameters"]["checkpoints"] = encode(policy)
        write_json(folder.manifest, manifest)
        return _Run(graph_manager, task, folder, settings, audience, keeper, videos).go()


@dataclass(frozen=True)
class _Run:
    """A run whose graph is built and whose folder exists."""

    graph_manager: GraphManager
    task: TaskParameters
    folder: RunFolder
    settings: RunSettings
    audience: Audience
    keeper: CheckpointKeeper
    videos: Videos | None

    def go(self) -> RunResult:
        """Train to the end or to a stop, save, evaluate."""
        if self.audience.on_start is not None:
            self.audience.on_start(self.graph_manager, self.task, self.folder)
        with ExitStack() as stack:
            stop = stack.enter_context(StopRequests(self.audience.announce))
            sinks = [*self._own_sinks(stack), *self.audience.sinks]
            try:
                self._train(sinks, stop)
            except RunError as error:
                done = self.graph_manager.clock.environment_steps
                data = write_evidence(self.folder.path, error, done)
                raise type(error)(f"{error}. {self._progress_and_checkpoint()}{data}") from error
            except KeyboardInterrupt:
                raise KeyboardInterrupt(f"interrupted. {self._progress_and_checkpoint()}") from None
            summary = None
            if stop.signal is None and self.settings.final_episodes.count > 0:
                summary = self._summarise(sinks, stop)
        return RunResult(
            folder=self.folder,
            environment_steps=self.graph_manager.clock.environment_steps,
            ending=self.graph_manager.ending,
            solved_at=self.graph_manager.solved_at,
            signal=stop.signal if summary is None else None,
            summary=summary,
            best=self.keeper.best,
        )

    def _train(self, sinks: Sequence[Sink], stop: StopRequests) -> None:
        record, is_saved, resources = None, False, ResourceSampler()
        for record in self.graph_manager.improve(is_stopped=stop.is_requested):
            _write(sinks, _with_resources(record, resources))
            if self.videos is not None and record.kind == "evaluation":
                self.videos.write(self.folder.videos / f"step_{record.environment_steps}")
            reasons = self.keeper.reasons(record) if self.graph_manager.is_settled else set()
            self._save(reasons, record, sinks)
            is_saved = bool(reasons)
            if stop.signal is not None and self.graph_manager.is_settled:
                break
        if record is not None and not is_saved and self.keeper.is_enabled:
            self._save({"last"}, record, sinks)

    def _save(self, reasons: set[Reason], record: LogRecord, sinks: Sequence[Sink]) -> None:
        """Say it, then do it, so that the line is among those the checkpoint keeps."""
        if not reasons:
            return
        scalars = {"checkpoint/best": float("best" in reasons)}
        blank = replace(record, kind="checkpoint", level="", agent="", scalars=scalars, arrays={})
        if self.keeper.is_enabled:
            _write(sinks, blank)
        self.keeper.save(reasons, record)

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

    def _summarise(self, sinks: Sequence[Sink], stop: StopRequests) -> Summary | None:
        """The final evaluation, also written into the run's folder; None where it was stopped."""
        _write(sinks, self.graph_manager.evaluation_begins())
        try:
            evaluation = final_evaluation(
                self.graph_manager,
                self.task,
                self.settings.final_episodes,
                is_stopped=stop.is_requested,
            )
        except EvaluationStopped:
            return None
        for record in (*evaluation.levels, evaluation):
            _write(sinks, _as_final(record))
        if self.videos is not None:
            self.videos.write(self.folder.videos / f"step_{evaluation.environment_steps}_final")
        checkpoints, best = self.folder.checkpoints, self.keeper.best
        seconds = self.graph_manager.training_seconds
        target, ending = self.graph_manager.parameters.validation, self.graph_manager.ending
        names = {pointer: pointed(checkpoints, pointer) for pointer in POINTERS}
        paths = {of: name and f"{checkpoints.name}/{name}" for of, name in names.items()}
        summary = Summary(
            evaluation=evaluation,
            steps_per_second=evaluation.environment_steps / seconds if seconds else 0.0,
            best_checkpoint=paths[BEST],
            last_checkpoint=paths[LAST],
            best="" if best is None else str(best),
            ending=ending or "",
            target="" if target is None else target.report(self.graph_manager.solved_at),
            solved_at=self.graph_manager.solved_at,
            faults=self.graph_manager.graph.tracker.faults,
        )
        document = {
            "created": now(),
            "seed": self.task.seed,
            **summary.as_json(),
            "best_evaluation": None if best is None else vars(best),
            "evaluated_episodes": evaluation_json(evaluation)["episodes"],
        }
        write_json(self.folder.summary, plain_json(document))
        return summary

    def _own_sinks(self, stack: ExitStack) -> list[Sink]:
        """The sinks that write into the run's folder, closed with `stack`."""
        folder = self.folder.path
        sinks: list[Sink] = [JsonlSink(folder / "log.jsonl"), CsvSink(folder)]
        if self.settings.tensorboard:
            done = self.graph_manager.clock.environment_steps
            sinks.append(TensorBoardSink(folder, resumed_at=done or None))
        for sink in sinks:
            stack.callback(sink.close)
        return sinks


def _policy(graph_manager: GraphManager, settings: RunSettings) -> CheckpointParameters:
    """The policy of checkpoints; what cannot be saved is refused unless there are none."""
    policy: CheckpointParameters = settings.checkpoints or graph_manager.parameters.checkpoints
    if policy.enabled:
        graph_manager.require_savable()
    return policy


def _check_disk_space(
    graph_manager: GraphManager, folder: Path, policy: CheckpointParameters
) -> None:
    if policy.enabled and policy.memories:
        planned = graph_manager.clock.planned
        steps = planned.count if isinstance(planned, EnvironmentSteps) else math.inf
        check_disk_space(graph_manager.state_dict(), folder, planned_steps=steps)


def _cut_back(folder: RunFolder, checkpoint: Checkpoint | None) -> None:
    """Drop what the logs say after a checkpoint, or everything where there is none."""
    notes = {"logs": {}, "event_files": {}} if checkpoint is None else checkpoint.notes
    cut_logs(folder.path, notes["logs"])
    if "event_files" in notes:  # not in checkpoints of earlier versions, whose files stay as is
        cut_event_files(folder.path, notes["event_files"])


def _videos(graph_manager: GraphManager, settings: RunSettings) -> Videos | None:
    return None if settings.video is None else Videos(graph_manager, settings.video)


def _warn_of_missing_memories(checkpoint: Checkpoint) -> None:
    if not checkpoint.has_memories:
        warnings.warn(
            f"{checkpoint.path.name} was saved without replay memories, so the resumed run is not "
            "exact: its agents act with what they have learned, and learn again once their "
            "memories hold learning.learning_starts transitions",
            CoachWarning,
            stacklevel=3,
        )


def _require_never_saved(folder: RunFolder, manifest: Json) -> None:
    """Refuse to begin anew, which drops the logs, where the run did have checkpoints.

    One that was killed while it wrote its first has announced it, and left a part of it behind.
    """
    if not manifest["parameters"].get("checkpoints", {}).get("enabled", True):
        raise CheckpointError(
            f"the run {folder.path} keeps no checkpoints (checkpoints.enabled=False), so it cannot "
            "be resumed; start a new run"
        )
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


def _write(sinks: Sequence[Sink], record: LogRecord) -> None:
    for sink in sinks:
        sink.write(record)
