"""The commands that train one run: train, resume, fork; and what they print about it."""

import signal
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Self

from coach_rl.cli.commands import COMMANDS
from coach_rl.cli.parser import Given
from coach_rl.cli.settings import configured, opening, overrides_of, run_settings, settings
from coach_rl.cli.terminal import console_of, program, short, word
from coach_rl.configuration.preset_file import Preset, load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import CheckpointError, ConfigurationError, DivergedError, RunError
from coach_rl.core.runtime import Runtime
from coach_rl.core.shown_text import printable, shown_level
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.runs.checkpoint import list_checkpoints
from coach_rl.runs.folder import RunFolder, in_newest_run, read_manifest
from coach_rl.runs.keeper import best_so_far
from coach_rl.runs.manifest import Origin
from coach_rl.sessions.loaded_levels import loading_report
from coach_rl.sessions.repeating import repeat_experiment
from coach_rl.sessions.session import (
    DEFAULT_ROOT,
    fork_experiment,
    resume_experiment,
    run_experiment,
)
from coach_rl.sessions.settings import Audience, RunResult
from coach_rl.telemetry.console import ConsoleSink
from coach_rl.telemetry.description import described

_SIGNAL_EXIT_CODE = 128
"""A process stopped by signal n exits with this plus n."""


def train(given: Given) -> int:
    """Train a preset in a new run; the exit code."""
    preset = load_preset(find_preset(given.preset))
    graph_manager, overrides = configured(given, preset)
    panel = {name: value for name, value in overrides.items() if name in preset.panel}
    _print_other_task(preset, panel, graph_manager)
    task = settings(given, Runtime)
    origin = Origin(preset=preset, panel=preset.panel_values(panel), command=_command(given))
    begin = partial(run_experiment, graph_manager, task, origin=origin)
    name = given.experiment_name or preset.reference.name
    root = given.experiment_path or DEFAULT_ROOT
    return _shown(given, partial(begin, name=name, root=root))


def _print_other_task(
    preset: Preset, panel: Mapping[str, object], experiment: GraphManager
) -> None:
    """Print that a preset's settings were made for another task, where they were."""
    own = preset.build(panel).parameters.environment.level
    level = experiment.parameters.environment.level
    if level != own:
        print(
            f"{preset.reference.name} was made for {shown_level(own)}: its settings may not fit "
            f"{shown_level(level)}, and its target is left out; `coach train PPO -lvl ...` has "
            "settings for any task"
        )


def resume(given: Given) -> int:
    """Continue a run; the exit code."""
    run = newest_run(given.run)
    begin = partial(
        resume_experiment,
        run,
        changes=overrides_of(given),
        **opening(given),
        drop_later=given.drop_later,
        restart_episodes=given.restart_episodes,
        command=_command(given),
    )
    return _shown(given, begin, run)


def fork(given: Given) -> int:
    """Train a new run from the state of another one; the exit code."""
    if not given.experiment_name:
        raise ConfigurationError(
            "a fork needs a name of its own, for the folder above it: --as NAME"
        )
    more = {**opening(given), "restart_episodes": given.restart_episodes}
    return _shown(given, _begun_as(fork_experiment, given, newest_run(given.run), **more))


def repeat(given: Given) -> int:
    """Train the experiment of another run from its beginning; the exit code."""
    more = {"device": given.device, "threads": given.threads, "trust": given.trust or ()}
    return _shown(given, _begun_as(repeat_experiment, given, newest_run(given.source), **more))


def _begun_as(
    begin: Callable[..., RunResult], given: Given, run: Path, **more: object
) -> Callable[..., RunResult]:
    """The call that begins a new run which is made from another one."""
    return partial(
        begin,
        run,
        name=given.experiment_name,
        root=given.experiment_path,
        overrides=overrides_of(given),
        seed=given.seed,
        command=_command(given),
        **more,
    )


def _shown(
    given: Given,
    begin: Callable[..., RunResult],
    run: Path | None = None,
) -> int:
    """Train a run while the terminal shows it; the exit code.

    Args:
        given: The command line.
        begin: Trains the run, with settings and audience.
        run: The run; None until it has a folder.
    """
    advice = _ResumeAdvice(run)
    with (
        advice,
        closing(ConsoleSink(console=console_of(plain=given.plain), plain=given.plain)) as console,
    ):
        result = begin(settings=run_settings(given), audience=_audience(given, console, advice))
    return _conclude(given, result)


def _command(given: Given) -> tuple[str, ...]:
    """The command line as it was typed."""
    return ("coach", *given.words)


def newest_run(run: Path) -> Path:
    """A path in which a folder of runs is replaced by its newest run, which is printed."""
    path, runs = in_newest_run(run)
    if runs:
        which = f"newest of {len(runs)} runs" if len(runs) > 1 else "the only run"
        print(f"{which} in {short(runs[-1].parent.absolute())}: {printable(runs[-1].name)}")
    return path


def _conclude(given: Given, result: RunResult) -> int:
    """Print how the run ended and what can be done with it; the exit code."""
    coach = program("coach")
    folder = word(result.folder.path)
    is_saved = bool(list_checkpoints(result.folder.checkpoints))
    for table in chain.from_iterable(part.tables for part in result.parts.values()):
        console_of(plain=given.plain).print(table)
    if result.unsaved is not None and result.summary is None:
        raise CheckpointError(f"cannot write {result.unsaved}{resume_advice(result.folder.path)}")
    if result.signal is not None:
        advice = resume_advice(result.folder.path)
        advice = advice or "; it has no checkpoint, so it can't be resumed"
        name = signal.Signals(result.signal).name
        print(f"stopped by {name} after {result.length}{advice}")
        return _SIGNAL_EXIT_CODE + result.signal
    if result.summary is not None:
        console_of(plain=given.plain).print(result.summary.table())
    print(f"run folder: {short(result.folder.path)}")
    if result.unsaved is not None:
        advice = resume_advice(result.folder.path)
        advice = advice or f"; {coach} -crd {folder} trains it again, from its beginning"
        raise CheckpointError(
            f"the end of this run is not saved: cannot write {result.unsaved}{advice}"
        )
    for each in chain.from_iterable(part.written for part in result.parts.values()):
        print(f"{each.what + ':':<11} {short(each.path)}{each.note}")
    _print_next(result.folder.path, is_saved=is_saved, has_curves=given.tensorboard is None)
    return 0


def _print_next(run: Path, *, is_saved: bool, has_curves: bool) -> None:
    """Print the commands about a run that is over."""
    coach = program("coach")
    folder = word(run)
    if is_saved:
        print(f"evaluate:   {coach} --evaluate 20 -crd {folder}")
        for each in COMMANDS.values():
            if each.after_run:
                print(f"{each.after_run + ':':<12}{coach} {each.name} {folder}")
    if has_curves:
        print(f"curves:     {coach} dashboard {word(run.parent)}")


class _ResumeAdvice:
    """Context that ends errors and interruptions of a run with how to resume it.

    Args:
        run: The run; None until it has a folder.
    """

    def __init__(self, run: Path | None = None) -> None:
        self.run = run

    def note(self, run: Path) -> None:
        """Set the run's folder, once there is one."""
        self.run = run

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _traceback: object) -> None:
        # What has diverged diverges again, and a checkpoint that doesn't load won't next time.
        is_final = isinstance(error, DivergedError | CheckpointError)
        is_resumable = isinstance(error, RunError | KeyboardInterrupt) and not is_final
        if is_resumable and self.run is not None:
            assert error is not None
            error.args = (f"{error or 'interrupted'}{resume_advice(self.run)}",)


def resume_advice(run: Path) -> str:
    """The command that resumes a run, as the end of a message; empty if nothing of it is saved."""
    folder = RunFolder(run)
    if folder.manifest.exists() and not list_checkpoints(folder.checkpoints):
        return ""
    return f"; resume with: {program('coach')} -crd {word(run.absolute())}"


def _audience(given: Given, console: ConsoleSink, advice: _ResumeAdvice) -> Audience:
    """The terminal as the audience of a run."""

    def on_start(graph_manager: GraphManager, task: Runtime, folder: RunFolder) -> None:
        advice.note(folder.path)
        parameters = graph_manager.parameters
        console.plan(
            parameters.schedule.training,
            parameters.schedule.stop_after,
            levels=[level.name for level in parameters.levels],
            policy=parameters.checkpoints,
            best=best_so_far(folder, parameters.checkpoints),
        )
        name = folder.path.parent.name
        environment = shown_level(parameters.environment.level)
        print(f"running:    {name} on {environment}, seed {task.seed}, {task.device}")
        if task.device.startswith("cuda"):
            modes = graph_manager.graph.updates.items()
            print(f"updates:    {', '.join(f'{name} {mode}' for name, mode in modes)}")
        print(f"run folder: {short(folder.path)}")
        if not parameters.checkpoints.enabled:
            print("checkpoints: none, so the run can't be resumed, nor evaluated once it is over")
        is_loaded = any(level.load is not None for level in parameters.levels)
        if is_loaded and not folder.checkpoints.exists():
            for line in loading_report(read_manifest(folder).get("loaded", {})):
                print(f"loaded:     {line}")
        if given.print_networks_summary:
            print(described(graph_manager))

    return Audience(
        sinks=(console,),
        on_start=on_start,
        announce=lambda text: console.announce(f"coach: {text}"),
        on_activity=console.show_activity,
    )
