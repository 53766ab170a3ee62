"""What the command line does: train, resume, evaluate, describe."""

from collections.abc import Sequence
from contextlib import closing

from rich.console import Console

from coach_rl.cli.arguments import Arguments
from coach_rl.cli.describe import describe_preset
from coach_rl.cli.shell import program, short, word
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.inspection import parse_inspections
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.experiment.evaluation import (
    evaluate_run,
    evaluate_untrained,
    evaluation_film,
)
from coach_rl.experiment.inspections import inspected
from coach_rl.experiment.overrides import parse_overrides
from coach_rl.experiment.preset_file import Preset, load_preset
from coach_rl.experiment.presets import PresetReference
from coach_rl.experiment.run_folder import Origin, RunFolder
from coach_rl.experiment.runner import (
    DEFAULT_ROOT,
    Audience,
    RunResult,
    RunSettings,
    resume_experiment,
    run_experiment,
)
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.graph_managers.task import TaskParameters
from coach_rl.telemetry.console import ConsoleSink
from coach_rl.telemetry.summary import evaluation_table
from coach_rl.telemetry.video import Format, VideoParameters

_SIGNAL_EXIT_CODE = 128
"""A process stopped by signal n exits with this plus n."""


def run_command(
    arguments: Arguments, reference: PresetReference | None, words: Sequence[str]
) -> int:
    """Do what a command line says.

    Args:
        arguments: The command line, read; neither `--help` nor `-l`.
        reference: The preset it names; None where it names none.
        words: The command line as it was typed, for the manifest.

    Returns:
        The exit code.

    Raises:
        CoachError: What was asked for cannot be done, or broke.
    """
    if reference is None:
        return _evaluate_run(arguments) if arguments.evaluate else _resume(arguments, words)
    preset = load_preset(reference)
    overrides = _overrides(arguments, preset)
    graph_manager = preset.configure(overrides)
    if arguments.inspect is not None:
        graph_manager = inspected(graph_manager, parse_inspections(arguments.inspect))
    if arguments.describe:
        return _describe(arguments, preset, graph_manager)
    if arguments.evaluate:
        return _evaluate_untrained(arguments, graph_manager)
    given = {name: value for name, value in overrides.items() if name in preset.panel}
    panel = preset.panel_values(given)
    return _train(
        arguments, graph_manager, Origin(preset=preset, panel=panel, command=_command(words))
    )


def _train(arguments: Arguments, graph_manager: GraphManager, origin: Origin) -> int:
    assert origin.preset is not None
    with closing(_console(arguments)) as console:
        result = run_experiment(
            graph_manager,
            _task(arguments),
            name=arguments.experiment_name or origin.preset.reference.name,
            root=arguments.experiment_path or DEFAULT_ROOT,
            origin=origin,
            settings=_settings(arguments),
            audience=_audience(arguments, console),
        )
    return _conclude(arguments, result)


def _resume(arguments: Arguments, words: Sequence[str]) -> int:
    assert arguments.checkpoint_restore is not None
    with closing(_console(arguments)) as console:
        result = resume_experiment(
            arguments.checkpoint_restore,
            steps=None if arguments.steps is None else EnvironmentSteps(arguments.steps),
            device=_device(arguments),
            threads=arguments.threads,
            command=_command(words),
            settings=_settings(arguments),
            audience=_audience(arguments, console),
        )
    return _conclude(arguments, result)


def _evaluate_run(arguments: Arguments) -> int:
    assert arguments.checkpoint_restore is not None
    assert arguments.evaluate is not None
    video = _video(arguments)
    evaluation, file = evaluate_run(
        arguments.checkpoint_restore,
        episodes=EnvironmentEpisodes(arguments.evaluate),
        seed=arguments.seed,
        device=_device(arguments),
        threads=arguments.threads,
        video=video,
    )
    _console_of(arguments).print(evaluation_table(evaluation))
    print(f"written to {file}")
    for kind in () if video is None else video.formats:
        print(f"filmed as  {evaluation_film(file)}.{kind}")
    return 0


def _evaluate_untrained(arguments: Arguments, graph_manager: GraphManager) -> int:
    assert arguments.evaluate is not None
    evaluation = evaluate_untrained(
        graph_manager,
        _task(arguments),
        episodes=EnvironmentEpisodes(arguments.evaluate),
    )
    print("agents as they are before any training:")
    _console_of(arguments).print(evaluation_table(evaluation))
    return 0


def _describe(arguments: Arguments, preset: Preset, graph_manager: GraphManager) -> int:
    with closing(graph_manager):
        graph_manager.create_graph(_task(arguments))
        print(describe_preset(preset, graph_manager))
    return 0


def _conclude(arguments: Arguments, result: RunResult) -> int:
    """Say how the run ended and what to do with it."""
    coach, folder = program("coach"), word(result.folder.path)
    if result.signal is not None:
        print(
            f"stopped after {result.environment_steps} environment steps; "
            f"resume with: {coach} -crd {folder}"
        )
        return _SIGNAL_EXIT_CODE + result.signal
    if result.summary is not None:
        _console_of(arguments).print(result.summary.table())
    print(f"run folder: {short(result.folder.path)}")
    print(f"evaluate:   {coach} --evaluate 20 -crd {folder}")
    if _video(arguments) is not None:
        print(f"videos:     {short(result.folder.videos)}")
    if not arguments.no_tensorboard:
        print(f"curves:     {program('tensorboard')} --logdir {folder}")
    return 0


def _overrides(arguments: Arguments, preset: Preset) -> dict[str, object]:
    """`-cp` and the flags short for it: to the panel where it has the name, else by path."""
    overrides = parse_overrides(arguments.custom_parameter or "")
    shortcuts = (
        ("-lvl", "level", "environment.level", arguments.level),
        ("-n", "num_envs", "num_envs", arguments.num_envs),
        ("--steps", "steps", "schedule.training", arguments.steps),
    )
    for flag, name, path, value in shortcuts:
        if value is None:
            continue
        target = name if name in preset.panel else path
        if target in overrides:
            raise ConfigurationError(f"{target} is given twice, by {flag} and by -cp; give one")
        overrides[target] = value
    return overrides


def _task(arguments: Arguments) -> TaskParameters:
    return TaskParameters(
        seed=arguments.seed or 0,
        device=_device(arguments) or "auto",
        matmul_precision=arguments.matmul_precision or "highest",
        threads=arguments.threads or 1,
    )


def _device(arguments: Arguments) -> str | None:
    return "cpu" if arguments.use_cpu else arguments.device


def _settings(arguments: Arguments) -> RunSettings:
    return RunSettings(
        checkpoint_seconds=arguments.checkpoint_seconds,
        tensorboard=not arguments.no_tensorboard,
        video=_video(arguments),
    )


def _video(arguments: Arguments) -> VideoParameters | None:
    asked: tuple[tuple[Format, bool], ...] = (
        ("gif", arguments.dump_gifs),
        ("mp4", arguments.dump_mp4),
    )
    formats = tuple(kind for kind, is_asked in asked if is_asked)
    if not formats:
        return None
    given = {"frame_skip": arguments.video_skip, "max_frames": arguments.video_frames}
    return VideoParameters(
        formats=formats, **{name: value for name, value in given.items() if value is not None}
    )


def _console(arguments: Arguments) -> ConsoleSink:
    return ConsoleSink(console=_console_of(arguments), plain=arguments.plain)


def _console_of(arguments: Arguments) -> Console:
    return Console(no_color=arguments.plain, highlight=False)


def _audience(arguments: Arguments, console: ConsoleSink) -> Audience:
    def on_start(graph_manager: GraphManager, task: TaskParameters, folder: RunFolder) -> None:
        parameters = graph_manager.parameters
        console.plan(parameters.schedule.training.count)
        name, level = folder.path.parent.name, parameters.environment.level
        print(f"running:    {name} on {level}, seed {task.seed}, {task.device}")
        print(f"run folder: {short(folder.path)}")
        if arguments.print_networks_summary:
            print(graph_manager.description())

    return Audience(
        sinks=(console,),
        on_start=on_start,
        announce=lambda text: console.announce(f"coach: {text}"),
        on_activity=console.tell,
    )


def _command(words: Sequence[str]) -> tuple[str, ...]:
    return ("coach", *words)
