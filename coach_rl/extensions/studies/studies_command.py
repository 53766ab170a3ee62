"""The commands about many runs: train with several seeds, study, sweep."""

import shlex
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from coach_rl.cli.parser import Given
from coach_rl.cli.settings import configured, overrides_of, settings
from coach_rl.cli.terminal import console_of, program, short, table_console, word
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import ConfigurationError, RunError
from coach_rl.core.runtime import Runtime
from coach_rl.core.shown_text import shown_level
from coach_rl.extensions.studies.conduct import conduct
from coach_rl.extensions.studies.job import Job, JobResult, Needs, in_quotes
from coach_rl.extensions.studies.live import LiveTable
from coach_rl.extensions.studies.places import check_place, executor
from coach_rl.extensions.studies.run_records import unpack_records, write_records
from coach_rl.extensions.studies.scores import read_scores, seeds_text
from coach_rl.extensions.studies.study import Study, check_study, load_study
from coach_rl.extensions.studies.study_runs import StudyRun, evaluate_missing, study_runs
from coach_rl.extensions.studies.sweeps.report import conclusion, write_report
from coach_rl.extensions.studies.sweeps.report import report as sweep_tables
from coach_rl.extensions.studies.sweeps.search import run_sweep
from coach_rl.extensions.studies.sweeps.sweep import Sweep
from coach_rl.extensions.studies.tables import report, seed_tables, write_blocks
from coach_rl.graph_managers.torch_settings import resolved_device
from coach_rl.runs.folder import check_name
from coach_rl.sessions.session import DEFAULT_ROOT
from coach_rl.telemetry.tables import Column, rich_table, table


def train_seeds(given: Given) -> int:
    """Train a run for each seed, show their progress and their scores; the exit code.

    Raises:
        ConfigurationError: The experiment doesn't resolve.
        RunError: Some of the runs have failed.
    """
    preset = load_preset(find_preset(given.preset))
    name = given.experiment_name or preset.reference.name
    check_name(name)
    check_place(given.on or "local")
    graph_manager, overrides = configured(given, preset, without=["on"])
    parameters = graph_manager.parameters
    task = settings(given, Runtime)
    threads = task.threads or parameters.threads
    task = replace(task, device=resolved_device(task.device), threads=threads)
    jobs = [
        Job(
            preset=given.preset,
            overrides=overrides,
            task=replace(task, seed=seed),
            name=name,
            root=given.experiment_path or DEFAULT_ROOT,
            needs=Needs(cores=threads),
            tensorboard=given.tensorboard is None,
            command=_command(given.words, seed),
        )
        for seed in given.seeds
    ]
    environment = shown_level(parameters.environment.level)
    folder = jobs[0].root / name

    def on_start(at_once: int) -> None:
        print(f"running:    {name} on {environment}, {len(jobs)} seeds, {at_once} at once")
        print(f"run folders in {short(folder.absolute())}")

    results = _conducted(jobs, given, on_start, lambda job: f"seed {job.task.seed}")
    done = [read_scores(each.folder) for each in results if each.state == "done" and each.folder]
    for each in seed_tables(done) if done else ():
        console_of(plain=given.plain).print(rich_table(each))
    if done and given.tensorboard is None:
        print(f"curves:     {program('coach')} dashboard {word(folder)}")
    _require_done(results)
    return 0


def _conducted(
    jobs: Sequence[Job],
    given: Given,
    on_start: Callable[[int], None],
    name_of: Callable[[Job], str],
) -> list[JobResult]:
    """Run jobs while a table shows their states."""

    def on_warning(job: Job, text: str) -> None:
        live.notify(f"coach: warning: {name_of(job)}: {text}")

    place = given.on or "local"
    with (
        closing(LiveTable(console_of(plain=given.plain), plain=given.plain)) as live,
        closing(executor(place, jobs, at_once=given.jobs, on_warning=on_warning)) as pool,
    ):
        on_start(pool.slots)
        return conduct(
            jobs,
            pool,
            on_change=live.show,
            announce=lambda text: live.notify(f"coach: {text}"),
        )


def _command(words: Sequence[str], seed: int) -> tuple[str, ...]:
    """The command line that trains the run of one seed alone."""
    kept = ["coach"]
    rest = iter(words)
    for each in rest:
        flag, equals, _ = each.partition("=")
        if flag not in ("--seeds", "--jobs", "--on"):
            kept.append(each)
        elif not equals:
            next(rest)
    return (*kept, "--seed", str(seed))


def _require_done(results: Sequence[JobResult]) -> None:
    """Raise an error that lists the failed seeds, with reasons."""
    seeds: dict[str, list[int]] = {}
    for result in results:
        if result.state != "done":
            seeds.setdefault(result.error, []).append(result.job.task.seed)
    if seeds:
        failed = sum(map(len, seeds.values()))
        reasons = (f"{seeds_text(of)}: {why}" for why, of in seeds.items())
        raise RunError(
            f"{failed} of {len(results)} runs failed: {'; '.join(reasons)}; the same command tries "
            "them again and leaves out what is done"
        )


def run_study(given: Given) -> int:
    """Run those of a study's runs that are missing, and print its tables; the exit code."""
    check_place(given.on or "local")
    study = load_study(given.file)
    check_study(study)
    runs = _runs(study, given)
    missing = [
        replace(run.job, tensorboard=given.tensorboard is None) for run in runs if not run.is_done
    ]
    print(f"study {study.name}: {len(runs)} runs, {len(runs) - len(missing)} done")

    def on_start(at_once: int) -> None:
        print(f"running:    {len(missing)} runs, {at_once} at once")

    results = _conducted(missing, given, on_start, _named) if missing else []
    runs = _runs(study, given)
    for run in evaluate_missing(study, runs):
        print(f"evaluating  {run.variant}, seed {run.seed}: {study.episodes} episodes")
    print(f"\n{report(study, runs, brief=True)}\n")
    print(f"run folders in {short((_root(given) / study.name).absolute())}")
    print(f"each run:   {program('coach')} study report {shlex.quote(given.file)}")
    failed = [each for each in results if each.state != "done"]
    if failed:
        also = ", ".join(_named(each.job) for each in failed[1:])
        others = f"; so did {also}" if also else ""
        raise RunError(
            f"{len(failed)} of {len(runs)} runs failed: {_named(failed[0].job)}: {failed[0].error}"
            f"{others}; the same command tries them again and leaves out what is done"
        )
    return 0


def _loaded(given: Given) -> tuple[Study, list[StudyRun]]:
    """A study and its runs."""
    study = load_study(given.file)
    return study, _runs(study, given)


def _runs(study: Study, given: Given) -> list[StudyRun]:
    return study_runs(study, root=_root(given), earlier=given.earlier or ())


def _root(given: Given) -> Path:
    root: Path = given.root or DEFAULT_ROOT
    return root


def _named(job: Job) -> str:
    """A job's name for people."""
    return f"{job.labels['variant']} seed {job.task.seed}"


def show_status(given: Given) -> int:
    """Print the state of each run of a study; the exit code."""
    study, runs = _loaded(given)

    def state(run: StudyRun) -> str:
        return "missing" if run.scores is None else run.scores.state

    columns = (
        Column("variant", lambda run: run.variant, is_text=True),
        Column("seed", lambda run: run.seed),
        Column("state", state, is_text=True),
        Column("steps", lambda run: run.scores and run.scores.moments, "{:,}".format),
        Column(
            study.metric, lambda run: run.scores and run.scores.last(study.metric), "{:,.4g}".format
        ),
        Column("run", lambda run: run.folder and short(run.folder.path), is_text=True),
    )
    table_console().print(rich_table(table(columns, runs), box=None, pad_edge=False))
    states = Counter(map(state, runs))
    print(", ".join(f"{count} {state}" for state, count in states.items()))
    return 0


def print_report(given: Given) -> int:
    """Print the tables of a study, or write them into pages; the exit code."""
    study, runs = _loaded(given)
    text = report(study, runs)
    print(text)
    if given.write is not None:
        pages = given.write or [Path(page) for page in study.pages]
        if not pages:
            raise ConfigurationError(
                f"the study '{study.name}' names no pages; give --write PAGE or Study(pages=...)"
            )
        scored = sum(run.score(study) is not None for run in runs)
        for page in write_blocks(pages, study.name, text, runs=scored):
            print(f"written to {short(page)}")
    return 0


def export_records(given: Given) -> int:
    """Write the records of a study's scored runs into one file; the exit code."""
    study, runs = _loaded(given)
    scored = [run.folder for run in runs if run.folder and run.score(study) is not None]
    if not scored:
        raise ConfigurationError(
            f"the study '{study.name}' has no scored runs in {_root(given) / study.name}; "
            f"`coach study run {given.file}` makes them"
        )
    archive = given.to or Path(f"{study.name}.zip")
    write_records(archive, study.name, scored)
    print(f"{len(scored)} of {len(runs)} runs written to {short(archive)}")
    if len(scored) < len(runs):
        print(f"the others have no score: {program('coach')} study run {shlex.quote(given.file)}")
    return 0


def import_records(given: Given) -> int:
    """Make run folders of records; the exit code."""
    new, were_there = unpack_records(given.archive, _root(given))
    name = short((*new, *were_there)[0].path.parent)
    print(f"{len(new)} new runs in {name}, {len(were_there)} were there already")
    return 0


def sweep_preset(given: Given) -> int:
    """Search for better settings of a preset; the exit code."""
    preset = load_preset(find_preset(given.preset))
    overrides = overrides_of(given, preset)
    threads = given.threads or preset.configure(overrides).parameters.threads
    sweep = settings(
        given,
        Sweep,
        preset=given.preset,
        overrides=overrides,
        task=replace(settings(given, Runtime), threads=threads),
        name=f"{preset.reference.name}_sweep",
        needs=Needs(cores=threads),
    )
    jobs = given.jobs or 1
    any_run = sweep.job({})
    with closing(
        executor(given.on or "local", [any_run] * jobs, at_once=jobs, on_warning=_warn)
    ) as pool:
        result = run_sweep(sweep, pool, announce=_announce)
    page = write_report(result)
    print(f"\n{sweep_tables(result)}\n")
    print(f"written to  {short(page)}")
    print(conclusion(result))
    if result.best:
        found = result.recommended
        changes = f" -cp {in_quotes(found)}" if found else ""
        print(f"train with it: {program('coach')} -p {shlex.quote(given.preset)}{changes}")
    return 0


def _announce(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')}  {text}", flush=True)


def _warn(job: Job, text: str) -> None:
    seed = f"seed {job.task.seed}"
    names = [f"{kind} {name}" for kind, name in job.labels.items() if kind == "trial"]
    _announce(f"warning: {', '.join(names or [job.labels['variant'], seed])}: {text}")
