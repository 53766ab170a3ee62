"""`coach -p PRESET --seeds SEEDS`: a run for each seed, and what they say together."""

from collections.abc import Sequence
from contextlib import closing

from rich.console import Console

from coach_rl.cli.flag_overrides import overrides_of, tracked
from coach_rl.cli.settings import TrainSeeds
from coach_rl.cli.shell import program, short, word
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import RunError
from coach_rl.core.level_name import shown_level
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.torch_settings import resolved_device
from coach_rl.runs.creation import check_name
from coach_rl.sessions.runner import DEFAULT_ROOT
from coach_rl.studies.conduct import conduct
from coach_rl.studies.job import Job, JobResult, Needs
from coach_rl.studies.live import LiveTable
from coach_rl.studies.places import check_place, executor
from coach_rl.studies.scores import read_scores
from coach_rl.studies.tables import seed_tables
from coach_rl.telemetry.tables import rich_table


def train_seeds(train: TrainSeeds, words: Sequence[str]) -> int:
    """Train a run for each seed, show their progress and their scores; returns the exit code.

    Args:
        train: The command line, read.
        words: The command line as it was typed, for the manifests.

    Raises:
        ConfigurationError: The experiment doesn't resolve.
        RunError: Some of the runs have failed.
    """
    preset = load_preset(find_preset(train.preset))
    name = train.experiment_name or preset.reference.name
    check_name(name)
    check_place(train.on)
    overrides = tracked(
        overrides_of(train.changes, preset, train.length, train.keeping), train.tracker
    )
    parameters = preset.configure(overrides).parameters
    threads = train.threads or parameters.threads
    jobs = [
        Job(
            preset=train.preset,
            overrides=overrides,
            task=Runtime(
                seed=seed,
                device=resolved_device(train.device),
                matmul_precision=train.matmul_precision,
                threads=threads,
            ),
            name=name,
            root=train.experiment_path or DEFAULT_ROOT,
            needs=Needs(cores=threads),
            tensorboard=not train.no_tensorboard,
            command=_command(words, seed),
        )
        for seed in train.seeds
    ]
    console = Console(no_color=train.plain, highlight=False)
    level = shown_level(parameters.environment.level)
    folder = jobs[0].root / name

    def on_warning(job: Job, text: str) -> None:
        table.tell(f"coach: warning: seed {job.task.seed}: {text}")

    with (
        closing(LiveTable(console, plain=train.plain)) as table,
        closing(executor(train.on, jobs, at_once=train.jobs, on_warning=on_warning)) as pool,
    ):
        print(f"running:    {name} on {level}, {len(jobs)} seeds, {pool.slots} at once")
        print(f"run folders in {short(folder.absolute())}")
        results = conduct(
            jobs,
            pool,
            on_change=table.show,
            announce=lambda text: table.tell(f"coach: {text}"),
        )
    done = [read_scores(each.folder) for each in results if each.state == "done" and each.folder]
    for each in seed_tables(done) if done else ():
        console.print(rich_table(each))
    if done and not train.no_tensorboard:
        print(f"curves:     {program('coach')} dashboard {word(folder)}")
    _require_done(results)
    return 0


def _command(words: Sequence[str], seed: int) -> tuple[str, ...]:
    """The command line that trains the run of one seed alone."""
    kept, rest = ["coach"], iter(words)
    for each in rest:
        flag, equals, _ = each.partition("=")
        if flag not in ("--seeds", "--jobs", "--on"):
            kept.append(each)
        elif not equals:
            next(rest)
    return (*kept, "--seed", str(seed))


def _require_done(results: Sequence[JobResult]) -> None:
    """Raise an error that says which seeds have failed, and why."""
    seeds: dict[str, list[int]] = {}
    for result in results:
        if result.state != "done":
            seeds.setdefault(result.error, []).append(result.job.task.seed)
    if seeds:
        failed = sum(map(len, seeds.values()))
        reasons = (
            f"seed{'s' * (len(of) > 1)} {', '.join(map(str, of))}: {why}"
            for why, of in seeds.items()
        )
        raise RunError(
            f"{failed} of {len(results)} runs failed: {'; '.join(reasons)}; the same command tries "
            "them again and leaves out what is done"
        )
