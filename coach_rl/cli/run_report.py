"""A run's words on the terminal: at its start, and when it is over."""

import signal
from pathlib import Path
from typing import Self

from rich.console import Console

from coach_rl.cli.settings import Film, Output
from coach_rl.cli.shell import program, short, word
from coach_rl.core.errors import CheckpointError, DivergedError, RunError
from coach_rl.core.level_name import shown_level
from coach_rl.core.process_group import ONE_PROCESS, ProcessGroup
from coach_rl.core.runtime import Runtime
from coach_rl.graph_managers.graph_manager import GraphManager
from coach_rl.runs.checkpoint import list_checkpoints
from coach_rl.runs.folder import RunFolder, read_manifest
from coach_rl.runs.keeper import best_so_far
from coach_rl.sessions.loaded_levels import loading_report
from coach_rl.sessions.settings import Audience, RunResult
from coach_rl.telemetry.console import ConsoleSink
from coach_rl.telemetry.video import Format, VideoParameters

_SIGNAL_EXIT_CODE = 128
"""A process stopped by signal n exits with this plus n."""


def conclude(output: Output, result: RunResult, group: ProcessGroup) -> int:
    """Say how the run ended and what to do with it."""
    coach, folder = program("coach"), word(result.folder.path)
    is_saved = bool(list_checkpoints(result.folder.checkpoints))
    if result.profile is not None:
        console_of(plain=output.plain).print(result.profile.table())
    if result.unsaved is not None and result.summary is None:
        raise CheckpointError(
            f"cannot write {result.unsaved}{resume_advice(result.folder.path, group)}"
        )
    if result.signal is not None:
        advice = resume_advice(result.folder.path, group)
        advice = advice or "; it has no checkpoint, so it can't be resumed"
        name = signal.Signals(result.signal).name
        print(f"stopped by {name} after {result.environment_steps} environment steps{advice}")
        return _SIGNAL_EXIT_CODE + result.signal
    if result.summary is not None:
        console_of(plain=output.plain).print(result.summary.table())
    print(f"run folder: {short(result.folder.path)}")
    if result.unsaved is not None:
        raise CheckpointError(f"the end of this run is not saved: cannot write {result.unsaved}")
    if result.profile is not None:
        print(f"profile:    {short(result.folder.path)}/profile.json; trace.json for Perfetto")
    if is_saved:
        print(f"evaluate:   {coach} --evaluate 20 -crd {folder}")
    if video_parameters(output.film) is not None and result.folder.videos.is_dir():
        print(f"videos:     {short(result.folder.videos)}")
    if not output.no_tensorboard:
        print(f"curves:     {coach} dashboard {word(result.folder.path.parent)}")
    return 0


def video_parameters(film: Film) -> VideoParameters | None:
    """The videos that flags ask for; None where they ask for none."""
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


def console_sink(output: Output) -> ConsoleSink:
    """The sink that shows a run on the terminal."""
    return ConsoleSink(console=console_of(plain=output.plain), plain=output.plain)


def console_of(*, plain: bool) -> Console:
    """The terminal; plain without colours."""
    return Console(no_color=plain, highlight=False)


class SaysHowToResume:
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
            error.args = (f"{error or 'interrupted'}{resume_advice(self.run, self._group)}",)


def resume_advice(run: Path, group: ProcessGroup = ONE_PROCESS) -> str:
    """The command that resumes a run, as the end of a message; empty if nothing of it is saved."""
    folder = RunFolder(run)
    if folder.manifest.exists() and not list_checkpoints(folder.checkpoints):
        return ""
    coach = program("coach")
    if group.size > 1:
        coach = f"{program('torchrun')} --standalone --nproc_per_node={group.size} -m coach_rl"
    return f"; resume with: {coach} -crd {word(run.absolute())}"


def audience_of(output: Output, console: ConsoleSink, going_on: SaysHowToResume) -> Audience:
    """The terminal as the audience of a run."""

    def on_start(graph_manager: GraphManager, task: Runtime, folder: RunFolder) -> None:
        going_on.note(folder.path)
        parameters = graph_manager.parameters
        console.plan(
            parameters.schedule.training,
            parameters.schedule.stop_after,
            levels=[level.name for level in parameters.levels],
            policy=parameters.checkpoints,
            best=best_so_far(folder, parameters.checkpoints),
        )
        name, level = folder.path.parent.name, shown_level(parameters.environment.level)
        print(f"running:    {name} on {level}, seed {task.seed}, {task.device}")
        if task.device.startswith("cuda"):
            modes = graph_manager.graph.updates.items()
            print(f"updates:    {', '.join(f'{name} {mode}' for name, mode in modes)}")
        print(f"run folder: {short(folder.path)}")
        if not parameters.checkpoints.enabled:
            print("checkpoints: none, so the run can't be resumed, nor evaluated once it is over")
        if not folder.checkpoints.exists():
            for line in loading_report(read_manifest(folder).get("loaded", {})):
                print(f"loaded:     {line}")
        if output.print_networks_summary:
            print(graph_manager.graph.description())

    return Audience(
        sinks=(console,),
        on_start=on_start,
        announce=lambda text: console.announce(f"coach: {text}"),
        on_activity=console.tell,
    )
