"""The commands of the command line: training (see `train`), evaluating, describing, checking."""

from collections.abc import Sequence
from contextlib import closing

from coach_rl.cli.check import check_environment, level_parameters
from coach_rl.cli.describe import describe_preset
from coach_rl.cli.flag_overrides import environment_of, overrides_of
from coach_rl.cli.resume import fork_command, newest_run, resume_command
from coach_rl.cli.run_report import console_of, video_parameters
from coach_rl.cli.settings import (
    CheckEnvironment,
    CheckPreset,
    Describe,
    Evaluate,
    EvaluateUntrained,
    Fork,
    Resume,
    Settings,
    Train,
)
from coach_rl.cli.shell import short
from coach_rl.cli.train import configured, train_command
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.runtime import Runtime
from coach_rl.core.steps import EnvironmentEpisodes
from coach_rl.processes.torch_processes import is_started_by_torchrun, joined_processes
from coach_rl.sessions.evaluation import evaluate_run, evaluate_untrained, evaluation_film
from coach_rl.telemetry.summary import evaluation_table


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
                return train_command(settings, command, group)
            return resume_command(settings, command, group)
    if is_started_by_torchrun():
        raise ConfigurationError(
            "torchrun starts processes that train together, and only `train` and `resume` do; "
            "leave torchrun out of this command"
        )
    match settings:
        case Fork():
            return fork_command(settings, command)
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


def _evaluate(evaluate: Evaluate) -> int:
    video = video_parameters(evaluate.film)
    evaluation, file = evaluate_run(
        newest_run(evaluate.run),
        episodes=EnvironmentEpisodes(evaluate.episodes),
        overrides=environment_of(evaluate.changes),
        num_envs=evaluate.changes.num_envs,
        **vars(evaluate.opening),
        sampling=evaluate.sampling,
        seed=evaluate.seed,
        video=video,
    )
    console_of(plain=evaluate.plain).print(evaluation_table(evaluation))
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
        Runtime(
            seed=evaluate.seed,
            device=evaluate.device,
            matmul_precision=evaluate.matmul_precision,
            threads=evaluate.threads,
        ),
        episodes=EnvironmentEpisodes(evaluate.episodes),
        sampling=evaluate.sampling,
    )
    print("agents as they are before any training:")
    console_of(plain=evaluate.plain).print(evaluation_table(evaluation))
    return 0


def _describe(describe: Describe) -> int:
    preset = load_preset(find_preset(describe.preset))
    overrides = overrides_of(describe.changes, preset, describe.length, describe.keeping)
    with closing(configured(preset, overrides, describe.inspect)) as graph_manager:
        graph_manager.create_graph(Runtime(device=describe.device))
        print(describe_preset(preset, graph_manager))
    return 0


def _check_preset(check: CheckPreset) -> int:
    preset = load_preset(find_preset(check.preset))
    graph_manager = preset.configure(overrides_of(check.changes, preset))
    return check_environment(graph_manager.parameters.environment)
