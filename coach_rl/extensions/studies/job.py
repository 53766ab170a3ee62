"""One run of many, as data for another process or host, and making it.

    result = run_job(Job(preset="CartPole_PPO", task=Runtime(seed=3), name=..., root=...))

A finished run is returned, an unfinished one resumed, else it is begun. A run is known by what
decides its numbers: the resolved parameters, seed, threads and precision. Its manifest holds a
digest of them, and the folder is all there is to know, so a job can be run anywhere, any number of
times, and after any end.
"""

import contextlib
import hashlib
import json
import shlex
import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol

from filelock import FileLock

from coach_rl.configuration.file_writing import separated
from coach_rl.configuration.overrides import format_overrides, parse_overrides
from coach_rl.configuration.parameters_json import encode, reference
from coach_rl.configuration.preset_file import Preset, load_preset
from coach_rl.configuration.presets import find_preset, shipped_presets
from coach_rl.configuration.strict_json import Json
from coach_rl.configuration.trust import code_in_parameters
from coach_rl.configuration.user_modules import let_import_named
from coach_rl.core.errors import CheckpointError, ConfigurationError, in_one_line
from coach_rl.core.runtime import Runtime
from coach_rl.extensions.studies.scores import StopOnNote, decisive
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.torch_settings import with_threads
from coach_rl.runs.folder import RunFolder, check_name, manifests_in, read_manifest
from coach_rl.runs.lock import (
    GONE_AFTER_SECONDS,
    RENEWED_EVERY_SECONDS,
    RunInUseError,
    locked,
)
from coach_rl.runs.manifest import Origin, code_of, remember_code
from coach_rl.sessions.session import resume_experiment, run_experiment
from coach_rl.sessions.settings import Audience, RunResult, RunSettings
from coach_rl.sessions.stop_requests import StopRequests

State = Literal["done", "stopped", "failed"]
"""The end of a job: with its summary, by a signal (it can be resumed), or by an error."""
Announce = Callable[[str], None]
"""Called with a line about what a run is doing."""
_POLL_SECONDS = 1.0


@dataclass(frozen=True, kw_only=True)
class Needs:
    """The share of a machine that a job takes."""

    cores: int = 1
    """Processor cores."""
    gpus: float = 0.0
    """GPUs; a share where several jobs fit on one."""
    memory_gb: float | None = None
    """Main memory; None: not known."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A run to be made."""

    preset: str
    """The preset, as after `-p`."""
    overrides: Mapping[str, object] = field(default_factory=dict)
    """Changes of its panel and parameters, by panel name or dotted path."""
    task: Runtime
    """Seed, device, threads, precision."""
    name: str
    """The experiment's name, the folder above the run's."""
    root: Path
    """The folder of all experiments."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Names under which the run's manifest can be found: study, variant."""
    needs: Needs = Needs()
    """The share of a machine that it takes."""
    tensorboard: bool = True
    """If True, its run writes TensorBoard files."""
    command: tuple[str, ...] = ()
    """The command line that makes this run alone, for its manifest; empty: as its fields give it.
    """
    modules_from: Path | None = None
    """The folder in which modules that it names are found; None: the working directory."""


@dataclass(frozen=True, kw_only=True)
class JobResult:
    """The result of a job."""

    job: Job
    state: State
    folder: Path | None
    """The run's folder; None where it failed before there was one."""
    error: str = ""
    """Reason of a failure, one line."""


class Executor(Protocol):
    """Runs jobs in processes, which call `run_job`.

    with closing(LocalPool(4)) as executor:
        future = executor.submit(job)
        result = future.result()   # WorkerLost where its process has ended
    """

    slots: int
    """Jobs that can run at once."""

    def submit(self, job: Job) -> Future[JobResult]:
        """Queue a job; its future is running once it has a slot."""
        ...

    def close(self, *, cancel: bool = False) -> None:
        """Wait for the submitted jobs and end the processes; may be repeated.

        Args:
            cancel: If True, cancel waiting jobs, and stop running ones, which save themselves
                first; a second call stops them at once.
        """
        ...


def identity(job: Job, preset: Preset | None = None) -> str:
    """A digest of all that decides the numbers of a job's run.

    Where a run is computed and which checkpoints it keeps is no part of it, nor is the version of
    the code, which the manifest notes.

    Args:
        job: The job.
        preset: The job's preset, if it has been loaded; None: it is loaded from its file.

    Raises:
        ConfigurationError: Its preset, or a change of it, does not resolve.
    """
    return _identity_of(_configured(job, preset)[1], job)


def can_be_typed(job: Job, preset: Preset | None = None) -> bool:
    """True if the text of a job's changes, as after `-cp`, is read as the same experiment.

    Args:
        job: The job.
        preset: The job's preset, if it has been loaded; None: it is loaded from its file.
    """
    try:
        typed = replace(job, overrides=parse_overrides(format_overrides(job.overrides)))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the experiment itself gives them
            return identity(typed, preset) == identity(job, preset)
    except ConfigurationError:
        return False


def find_run(job: Job) -> RunFolder | None:
    """The run of a job, finished or not; None where it has not begun.

    Raises:
        ConfigurationError: Its preset, or a change of it, does not resolve.
        CheckpointError: The run's manifest is damaged.
    """
    return find_identity(job.root / job.name, identity(job))


def find_identity(experiment: Path, identity: str) -> RunFolder | None:
    """The run of this identity right below a folder; a finished one first, then the newest.

    A run that has since been resumed with other parameters is another one.
    """
    found = []
    for path in manifests_in(experiment):
        try:
            is_near = identity in path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):  # deleted meanwhile, or damaged: not the run
            continue
        if is_near:
            run = RunFolder(path.parent)
            manifest = read_manifest(run)
            if manifest.get("job", {}).get("identity") == identity == _digest(manifest):
                found.append((is_finished(run), manifest["created"], run.path.name, run))
    return max(found, key=lambda entry: entry[:3])[3] if found else None


def is_finished(run: RunFolder) -> bool:
    """True if a run has trained to its end and its summary is written."""
    return run.summary.exists()


def remember_job(job: Job) -> None:
    """Trust what a job's run uses, on this machine, where it is made on another.

    Raises:
        ConfigurationError: Its preset, or a change of it, does not resolve.
    """
    preset, graph_manager = _configured(job)
    origin = _origin(job, preset, graph_manager, digest="")
    remember_code(code_of(graph_manager, _made_of(graph_manager, job)), origin)


def run_job(job: Job) -> JobResult:
    """Make or continue the run of a job, unless it is finished.

    Returns:
        The result, also of a run that fails or is stopped by a signal.
    """
    folders: list[RunFolder] = []
    try:
        with StopRequests():  # a signal that comes before the run takes them
            state, error = _run(job, folders)
    except KeyboardInterrupt as interruption:
        state = "stopped"
        error = str(interruption)
    except BaseException as failure:
        state = "failed"
        error = in_one_line(failure)
    return JobResult(
        job=job, state=state, folder=folders[-1].path if folders else None, error=error
    )


def _run(job: Job, folders: list[RunFolder]) -> tuple[State, str]:
    """The state of a job after running it, and an error; its folder is noted once there is one."""
    preset, graph_manager = _configured(job)
    digest = _identity_of(graph_manager, job)
    experiment = job.root / job.name
    check_name(job.name)
    experiment.mkdir(parents=True, exist_ok=True)
    stopper = StopOnNote()
    deadline = time.monotonic() + GONE_AFTER_SECONDS + 2 * RENEWED_EVERY_SECONDS
    while True:
        with ExitStack() as beginning:
            beginning.enter_context(_only_one_begins(experiment, digest))
            run = find_identity(experiment, digest)
            if run is not None:
                folders.append(run)
            if run is not None and is_finished(run):
                return "done", ""

            def on_start(_manager: GraphManager, _task: object, folder: RunFolder) -> None:
                folders.append(folder)
                stopper.run = folder.path
                beginning.close()

            audience = Audience(sinks=(stopper,), on_start=on_start)
            origin = _origin(job, preset, graph_manager, digest)
            try:
                return _outcome(_trained(job, graph_manager, run, origin, audience))
            except ConfigurationError as error:
                if run is not None and is_finished(run):
                    return "done", ""  # by another process, before this one held the run
                if not isinstance(error, RunInUseError) or time.monotonic() > deadline:
                    raise
        time.sleep(_POLL_SECONDS)


def _trained(
    job: Job, graph_manager: GraphManager, run: RunFolder | None, origin: Origin, audience: Audience
) -> RunResult:
    """Resume a job's run; one that is not there, or keeps no checkpoints, is begun."""
    settings = RunSettings(tensorboard=job.tensorboard)
    manifest = {} if run is None else read_manifest(run)
    if run is not None and manifest["parameters"].get("checkpoints", {}).get("enabled", True):
        remember_code(code_of(graph_manager, manifest), origin)
        device = None if job.task.device == "auto" else job.task.device
        return resume_experiment(
            run.path,
            device=device,
            command=origin.command,
            settings=settings,
            audience=audience,
        )
    if run is not None:
        with locked(run.path):
            pass  # no other process makes it
    return run_experiment(
        graph_manager,
        job.task,
        name=job.name,
        root=job.root,
        origin=origin,
        settings=settings,
        audience=audience,
    )


def with_absolute_paths(job: Job) -> Job:
    """The job for a process with another working directory."""
    found = find_preset(job.preset)
    job = replace(job, root=job.root.absolute(), modules_from=Path.cwd())
    is_shipped = found.path in {preset.path for preset in shipped_presets().values()}
    return job if is_shipped else replace(job, preset=f"{found.path}:{found.function}")


def _outcome(result: RunResult) -> tuple[State, str]:
    if result.folder.summary.exists():
        return "done", result.unsaved or ""
    if result.signal is not None:
        return "stopped", result.unsaved or ""
    raise CheckpointError("; ".join(filter(None, (result.unsaved, *result.incidents))))


def _configured(job: Job, loaded: Preset | None = None) -> tuple[Preset, GraphManager]:
    preset = loaded or load_preset(find_preset(job.preset))
    graph_manager = preset.configure(job.overrides)
    if job.modules_from is not None:
        let_import_named(code_in_parameters(graph_manager.parameters), job.modules_from)
    return preset, graph_manager


def _origin(job: Job, preset: Preset, graph_manager: GraphManager, digest: str) -> Origin:
    given = {name: value for name, value in job.overrides.items() if name in preset.panel}
    command = job.command
    if not command and can_be_typed(job, preset):
        command = coach_words(job, graph_manager.parameters.threads)
    return Origin(
        preset=preset,
        panel=preset.panel_values(given),
        command=command,
        job={"identity": digest, "labels": dict(job.labels)},
    )


def _identity_of(graph_manager: GraphManager, job: Job) -> str:
    return _digest(_made_of(graph_manager, job))


def _made_of(graph_manager: GraphManager, job: Job) -> Json:
    """The entries of a manifest that decide a run's numbers."""
    return {
        "graph_manager": reference(type(graph_manager), "graph_manager"),
        "parameters": encode(graph_manager.parameters),
        "task": encode(with_threads(job.task, graph_manager.parameters.threads), "task"),
    }


def _digest(manifest: Json) -> str:
    """A digest of the entries of a manifest that decide its run's numbers."""
    text = json.dumps(decisive(manifest), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


@contextmanager
def _only_one_begins(experiment: Path, digest: str) -> Iterator[None]:
    """While entered, no other process with the same job searches for its run or begins it."""
    path = experiment / f".beginning-{digest[:16]}"
    lock = FileLock(separated(path))
    with contextlib.suppress(OSError, NotImplementedError):  # a file system without locks
        lock.acquire()
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        lock.release()


def coach_words(
    job: Job, threads: int, *, seeds: Sequence[int] = (), name: str | None = None
) -> tuple[str, ...]:
    """The words of a `coach` command line that makes the run of a job.

    Args:
        job: Its changes can be typed, see `can_be_typed`.
        threads: The number that its preset states after its changes, which needs no flag.
        seeds: Several seeds to make it with; empty for its own.
        name: Another experiment's name; None for its own.
    """
    words = ["coach", "-p", job.preset]
    if job.overrides:
        words += ["-cp", format_overrides(job.overrides)]
    many = ",".join(map(str, seeds))
    words += ["--seeds", many] if len(seeds) > 1 else ["--seed", str(job.task.seed)]
    settings = {
        "--device": (job.task.device, "auto"),
        "--threads": (job.task.threads or threads, threads),
        "--matmul_precision": (job.task.matmul_precision, "highest"),
    }
    for flag, (value, default) in settings.items():
        if value != default:
            words += [flag, str(value)]
    return (*words, "-e", job.name if name is None else name)


def coach_line(jobs: Sequence[Job]) -> str | None:
    """The `coach` line that makes some jobs again, which differ by their seeds alone.

    Args:
        jobs: One or more; the runs go to an experiment of another name, `NAME_again`, since where
            they are now they are done.

    Returns:
        None where the jobs change something to a value that has no text.
    """
    job = jobs[0]
    preset = load_preset(find_preset(job.preset))
    if not can_be_typed(job, preset):
        return None
    threads = preset.configure(job.overrides).parameters.threads
    seeds = [each.task.seed for each in jobs]
    words = coach_words(job, threads, seeds=seeds, name=f"{job.name}_again")
    return " ".join(
        in_quotes(word) if before == "-cp" else shlex.quote(word)
        for before, word in zip(("", *words), words, strict=False)
    )


def in_quotes(changes: str) -> str:
    """Changes, which often have quotes of their own, as one word of a command line."""
    return shlex.quote(changes) if set(changes) & set('"$`\\!') else f'"{changes}"'
