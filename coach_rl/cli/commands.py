"""The commands of the command line: train, resume, evaluate, describe, check."""

import signal
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Self, cast

from rich.console import Console

from coach_rl.cli.check import check_environment, level_parameters
from coach_rl.cli.describe import describe_preset
from coach_rl.cli.settings import (
    Changes,
    CheckEnvironment,
    CheckPreset,
    Collecting,
    Describe,
    Evaluate,
    EvaluateUntrained,
    Film,
    Fork,
    Keeping,
    Length,
    Output,
    Resume,
    Settings,
    Train,
)
from coach_rl.cli.shell import program, short, word
from coach_rl.core.errors import CheckpointError, ConfigurationError, DivergedError, RunError
from coach_rl.core.inspection import parse_inspections
from coach_rl.core.level_name import shown_level
from coach_rl.core.process_group import ONE_PROCESS, ProcessGroup
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps, Hours
from coach_rl.distributed.torch_processes import is_started_by_torchrun, joined_processes
from coach_rl.experiment.adaptations import inspected
from coach_rl.experiment.data_parallel import follow_experiment, follow_resumed
from coach_rl.experiment.evaluation import (
    evaluate_run,
    evaluate_untrained,
    evaluation_film,
)
from coach_rl.experiment.fork import fork_experiment
from coach_rl.experiment.live_run import Audience, RunResult, RunSettings
from coach_rl.experiment.loaded_levels import loading_report
from coach_rl.experiment.manifest import Origin
from coach_rl.experiment.overrides import parse_overrides
from coach_rl.experiment.preset_file import Preset, load_preset
from coach_rl.experiment.presets import find_preset
from coach_rl.experiment.run_folder import RunFolder, read_manifest, runs_in
from coach_rl.experiment.runner import DEFAULT_ROOT, resume_experiment, run_experiment
from coach_rl.graph_managers.checkpoint_parameters import CheckpointParameters
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.parameters import ValidationParameters
from coach_rl.graph_managers.task import TaskParameters
from coach_rl.telemetry.console import ConsoleSink
from coach_rl.telemetry.summary import evaluation_table
from coach_rl.telemetry.tracker import Service, TrackerParameters
from coach_rl.telemetry.video import Format, VideoParameters

_FLAGS = {
    "environment.level": "-lvl",
    "num_envs": "-n",
    "collection.workers": "--workers",
    "collection.on": "--on",
    "schedule.training": "--steps",
    "schedule.stop_after": "--hours",
    "schedule.until_solved": "--until_solved",
    "validation": "--until_solved",
    "checkpoints.every_seconds": "-s",
    "checkpoints.every_steps": "--checkpoint_steps",
    "checkpoints.keep_last": "--keep",
    "checkpoints.keep_every": "--keep_every",
    "checkpoints.best_of": "--best",
    "checkpoints.memories": "--no_memories",
    "checkpoints": "--no_checkpoints",
}
"""The flag that stands for a path."""
_SIGNAL_EXIT_CODE = 128
"""A process stopped by signal n exits with this plus n."""


def run_command(settings: Settings, words: Sequence[str]) -> int:
    """Run the command of a command line.

    Args:
        settings: The command line, read; not to list presets, which `main` does without torch.
        words: The command line as it was typed, for the manifest.

    Returns:
        The exit code.

    Raises:
        CoachError: What was asked for cannot be done, or broke.
    """
    command = ("coach", *words)
    if isinstance(settings, Train | Resume):
        with joined_processes() as group:
            if isinstance(settings, Train):
                return _train(settings, command, group)
            return _resume(settings, command, group)
    if is_started_by_torchrun():
        raise ConfigurationError(
            "torchrun starts processes that train together, and only `train` and `resume` do; "
            "leave torchrun out of this command"
        )
    match settings:
        case Fork():
            return _fork(settings, command)
        case Evaluate():
            return _evaluate(settings)
        case EvaluateUntrained():
            return _evaluate_untrained(settings)
        case Describe():
            return _describe(settings)
        case CheckEnvironment():
            return check_environment(level_parameters(settings.environment))
        case CheckPreset():
            return _check_preset(settings)
    raise AssertionError(f"{type(settings).__name__} is done by `main`")


def _train(train: Train, command: tuple[str, ...], group: ProcessGroup) -> int:
    preset = load_preset(find_preset(train.preset))
    overrides = tracked(
        overrides_of(train.changes, preset, train.length, train.keeping, train.collecting),
        train.tracker,
    )
    graph_manager = _configured(preset, overrides, train.inspect)
    given = {name: value for name, value in overrides.items() if name in preset.panel}
    task = TaskParameters(
        seed=train.seed,
        device=train.device,
        matmul_precision=train.matmul_precision,
        threads=train.threads,
    )
    going_on = _GoingOn(group)
    if group.rank > 0:
        with going_on:
            follow_experiment(
                graph_manager,
                task,
                group=group,
                on_start=going_on.note,
                profile=train.output.profile,
            )
        return 0
    with going_on, closing(_sink(train.output)) as console:
        result = run_experiment(
            graph_manager,
            task,
            name=train.experiment_name or preset.reference.name,
            root=train.experiment_path or DEFAULT_ROOT,
            origin=Origin(preset=preset, panel=preset.panel_values(given), command=command),
            settings=_run_settings(train.output),
            audience=_audience(train.output, console, going_on),
            group=group,
        )
    return _conclude(train.output, result, group)


def _resume(resume: Resume, command: tuple[str, ...], group: ProcessGroup) -> int:
    run = _newest(resume.run)
    changes = tracked(_run_changes(resume.length, resume.keeping), resume.tracker)
    changes = _inspecting(changes, resume.inspect)
    if resume.on is not None:
        changes["collection.on"] = resume.on
    going_on = _GoingOn(group, run)
    if group.rank > 0:
        with going_on:
            follow_resumed(
                run,
                changes=changes,
                **vars(resume.opening),
                restart_episodes=resume.restart_episodes,
                group=group,
                on_start=going_on.note,
                profile=resume.output.profile,
            )
        return 0
    with going_on, closing(_sink(resume.output)) as console:
        result = resume_experiment(
            run,
            changes=changes,
            **vars(resume.opening),
            drop_later=resume.drop_later,
            restart_episodes=resume.restart_episodes,
            command=command,
            settings=_run_settings(resume.output),
            audience=_audience(resume.output, console, going_on),
            group=group,
        )
    return _conclude(resume.output, result, group)


def _fork(fork: Fork, command: tuple[str, ...]) -> int:
    if not fork.experiment_name:
        raise ConfigurationError(
            "a fork needs a name of its own, for the folder above it: --as NAME"
        )
    going_on = _GoingOn(ONE_PROCESS)
    overrides = parse_overrides(fork.custom_parameter)
    overrides = _once(overrides, _run_changes(fork.length, fork.keeping))
    with going_on, closing(_sink(fork.output)) as console:
        result = fork_experiment(
            _newest(fork.run),
            name=fork.experiment_name,
            root=fork.experiment_path,
            overrides=_inspecting(tracked(overrides, fork.tracker), fork.inspect),
            seed=fork.seed,
            **vars(fork.opening),
            restart_episodes=fork.restart_episodes,
            command=command,
            settings=_run_settings(fork.output),
            audience=_audience(fork.output, console, going_on),
        )
    return _conclude(fork.output, result, ONE_PROCESS)


def _evaluate(evaluate: Evaluate) -> int:
    video = _video(evaluate.film)
    evaluation, file = evaluate_run(
        _newest(evaluate.run),
        episodes=EnvironmentEpisodes(evaluate.episodes),
        overrides=environment_of(evaluate.changes),
        num_envs=evaluate.changes.num_envs,
        **vars(evaluate.opening),
        sampling=evaluate.sampling,
        seed=evaluate.seed,
        video=video,
    )
    _console(plain=evaluate.plain).print(evaluation_table(evaluation))
    if file is not None:
        print(f"written to {short(file)}")
        for kind in () if video is None else video.formats:
            film = evaluation_film(file).with_suffix(f".{kind}")
            if film.exists():  # not where nothing can be drawn
                print(f"filmed as  {short(film)}")
    return 0


def _evaluate_untrained(evaluate: EvaluateUntrained) -> int:
    preset = load_preset(find_preset(evaluate.preset))
    evaluation = evaluate_untrained(
        preset.configure(overrides_of(evaluate.changes, preset)),
        TaskParameters(
            seed=evaluate.seed,
            device=evaluate.device,
            matmul_precision=evaluate.matmul_precision,
            threads=evaluate.threads,
        ),
        episodes=EnvironmentEpisodes(evaluate.episodes),
        sampling=evaluate.sampling,
    )
    print("agents as they are before any training:")
    _console(plain=evaluate.plain).print(evaluation_table(evaluation))
    return 0


def _describe(describe: Describe) -> int:
    preset = load_preset(find_preset(describe.preset))
    overrides = overrides_of(describe.changes, preset, describe.length, describe.keeping)
    with closing(_configured(preset, overrides, describe.inspect)) as graph_manager:
        graph_manager.create_graph(TaskParameters(device=describe.device))
        print(describe_preset(preset, graph_manager))
    return 0


def _check_preset(check: CheckPreset) -> int:
    preset = load_preset(find_preset(check.preset))
    graph_manager = preset.configure(overrides_of(check.changes, preset))
    return check_environment(graph_manager.parameters.environment)


def _configured(
    preset: Preset, overrides: Mapping[str, object], inspections: str | None
) -> GraphManager:
    graph_manager = preset.configure(overrides)
    if inspections is None:
        return graph_manager
    return inspected(graph_manager, parse_inspections(inspections))


def _newest(run: Path) -> Path:
    """The newest run of a folder of runs, which is said; any other path as it is."""
    runs = runs_in(run)
    if not runs:
        return run
    which = f"newest of {len(runs)} runs" if len(runs) > 1 else "the only run"
    print(f"{which} in {short(run.absolute())}: {runs[-1].name}")
    return runs[-1]


def _conclude(output: Output, result: RunResult, group: ProcessGroup) -> int:
    """Say how the run ended and what to do with it."""
    coach, folder = program("coach"), word(result.folder.path)
    is_saved = result.folder.checkpoints.is_dir()
    if result.profile is not None:
        _console(plain=output.plain).print(result.profile.table())
    if result.unsaved is not None and result.summary is None:
        raise CheckpointError(
            f"cannot write {result.unsaved}; {_resume_with(result.folder.path, group)}"
        )
    if result.signal is not None:
        way_on = (
            _resume_with(result.folder.path, group)
            if is_saved
            else "it keeps no checkpoints, so it can't be resumed"
        )
        name = signal.Signals(result.signal).name
        print(f"stopped by {name} after {result.environment_steps} environment steps; {way_on}")
        return _SIGNAL_EXIT_CODE + result.signal
    if result.summary is not None:
        _console(plain=output.plain).print(result.summary.table())
    print(f"run folder: {short(result.folder.path)}")
    if result.unsaved is not None:
        raise CheckpointError(f"the end of this run is not saved: cannot write {result.unsaved}")
    if result.profile is not None:
        print(f"profile:    {short(result.folder.path)}/profile.json; trace.json for Perfetto")
    if is_saved:
        print(f"evaluate:   {coach} --evaluate 20 -crd {folder}")
    if _video(output.film) is not None and result.folder.videos.is_dir():
        print(f"videos:     {short(result.folder.videos)}")
    if not output.no_tensorboard:
        print(f"curves:     {coach} dashboard {word(result.folder.path.parent)}")
    return 0


def overrides_of(
    changes: Changes,
    preset: Preset,
    length: Length | None = None,
    keeping: Keeping | None = None,
    collecting: Collecting | None = None,
) -> dict[str, object]:
    """`-cp` and the flags short for it: to the panel where it has the name, else by path."""
    overrides = parse_overrides(changes.custom_parameter)
    given = _run_changes(length or Length(), keeping or Keeping())
    workers = collecting or Collecting()
    shortcuts = {
        "environment.level": changes.level,
        "num_envs": changes.num_envs,
        "collection.workers": workers.workers,
        "collection.on": workers.on,
        **given,
    }
    for path, given_value in shortcuts.items():
        if given_value is None:
            continue
        target, value = preset.setting(path, given_value)
        if target in overrides:
            flag = _FLAGS[path]
            raise ConfigurationError(f"{target} is given twice, by {flag} and by -cp; give one")
        overrides[target] = value
    return overrides


def tracked(overrides: dict[str, object], tracker: str | None) -> dict[str, object]:
    """Overrides and `--tracker`, which replaces the sinks of the preset, or of the run."""
    if tracker is None:
        return overrides
    service, _, project = tracker.partition(":")
    if service == "off":
        return _once(overrides, {"sinks": ()})
    described = TrackerParameters(service=cast(Service, service))
    described = replace(described, project=project) if project else described
    return _once(overrides, {"sinks": (described,)})


def _inspecting(overrides: dict[str, object], inspections: str | None) -> dict[str, object]:
    """Overrides and `--inspect`, which replaces the inspections of a run."""
    if inspections is None:
        return overrides
    return _once(overrides, {"inspect": parse_inspections(inspections)})


def environment_of(changes: Changes) -> dict[str, object]:
    """`-cp` and `-lvl` as changes of the environment that a run is evaluated in."""
    level = {} if changes.level is None else {"environment.level": changes.level}
    return _once(parse_overrides(changes.custom_parameter), level)


def _once(overrides: dict[str, object], flags: Mapping[str, object]) -> dict[str, object]:
    """`-cp` and the flags that say the same by path; each path once."""
    for path in overrides.keys() & flags.keys():
        raise ConfigurationError(f"{path} is given twice, by a flag and by -cp; give one")
    return {**overrides, **flags}


def _run_changes(length: Length, keeping: Keeping) -> dict[str, object]:
    """The flags about how long a run trains and what it keeps, by path."""
    if keeping.no_checkpoints and keeping != Keeping(no_checkpoints=True):
        raise ConfigurationError(
            "--no_checkpoints keeps none; leave out the other flags about checkpoints"
        )
    values = {
        "schedule.training": None if length.steps is None else EnvironmentSteps(length.steps),
        "schedule.stop_after": None if length.hours is None else Hours(length.hours),
        "checkpoints.every_seconds": keeping.checkpoint_seconds,
        "checkpoints.every_steps": keeping.checkpoint_steps,
        "checkpoints.keep_last": keeping.keep,
        "checkpoints.keep_every": keeping.keep_every,
        "checkpoints.best_of": keeping.best,
        "checkpoints.memories": False if keeping.no_memories else None,
        "checkpoints": CheckpointParameters(enabled=False) if keeping.no_checkpoints else None,
    }
    changes: dict[str, object] = {path: of for path, of in values.items() if of is not None}
    if length.until_solved is not None:
        name, _, number = length.until_solved.partition("=")
        changes["schedule.until_solved"] = name != "off"
        if number:
            changes["validation"] = (
                ValidationParameters(reward=float(number))
                if name == "reward"
                else ValidationParameters(success_rate=float(number))
            )
    return changes


def _run_settings(output: Output) -> RunSettings:
    return RunSettings(
        tensorboard=not output.no_tensorboard,
        histograms=None if output.histograms is None else EnvironmentSteps(output.histograms),
        evaluate_aside=output.evaluate_aside,
        profile=output.profile,
        video=_video(output.film),
    )


def _video(film: Film) -> VideoParameters | None:
    asked: tuple[tuple[Format, bool], ...] = (("gif", film.dump_gifs), ("mp4", film.dump_mp4))
    formats = tuple(kind for kind, is_asked in asked if is_asked)
    if not formats:
        return None
    given = {
        "frame_skip": film.video_skip,
        "max_frames": film.video_frames,
        "of": film.video_of,
        "episodes": film.video_episodes,
        "every": film.video_every,
        "row": film.video_row,
    }
    return VideoParameters(
        formats=formats,
        **{name: value for name, value in given.items() if value is not None},  # type: ignore[arg-type]
    )


def _sink(output: Output) -> ConsoleSink:
    return ConsoleSink(console=_console(plain=output.plain), plain=output.plain)


def _console(*, plain: bool) -> Console:
    return Console(no_color=plain, highlight=False)


class _GoingOn:
    """While entered, errors and interruptions of a run end with how to resume it.

    Args:
        group: The processes that train it.
        run: The run; None until it has a folder.
    """

    def __init__(self, group: ProcessGroup, run: Path | None = None) -> None:
        self.run, self._group = run, group

    def note(self, run: Path) -> None:
        """The run has a folder."""
        self.run = run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        # What has diverged diverges again, and a checkpoint that doesn't load won't next time.
        is_final = isinstance(error, DivergedError | CheckpointError)
        can_go_on = isinstance(error, RunError | KeyboardInterrupt) and not is_final
        if can_go_on and self.run is not None:
            assert error is not None
            error.args = (f"{error or 'interrupted'}; {_resume_with(self.run, self._group)}",)


def _resume_with(run: Path, group: ProcessGroup) -> str:
    coach = program("coach")
    if group.size > 1:
        coach = f"{program('torchrun')} --standalone --nproc_per_node={group.size} -m coach_rl"
    return f"resume with: {coach} -crd {word(run.absolute())}"


def _audience(output: Output, console: ConsoleSink, going_on: _GoingOn) -> Audience:
    def on_start(graph_manager: GraphManager, task: TaskParameters, folder: RunFolder) -> None:
        going_on.note(folder.path)
        parameters = graph_manager.parameters
        console.plan(parameters.schedule.training, parameters.schedule.stop_after)
        name, level = folder.path.parent.name, shown_level(parameters.environment.level)
        print(f"running:    {name} on {level}, seed {task.seed}, {task.device}")
        print(f"run folder: {short(folder.path)}")
        if not parameters.checkpoints.enabled:
            print("checkpoints: none, so the run can't be resumed, nor evaluated once it is over")
        if not folder.checkpoints.exists():
            for line in loading_report(read_manifest(folder).get("loaded", {})):
                print(f"loaded:     {line}")
        if output.print_networks_summary:
            print(graph_manager.description())

    return Audience(
        sinks=(console,),
        on_start=on_start,
        announce=lambda text: console.announce(f"coach: {text}"),
        on_activity=console.tell,
    )
