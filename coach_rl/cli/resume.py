"""The commands that go on from a run: resume, fork."""

from contextlib import closing
from pathlib import Path

from coach_rl.cli.flag_overrides import inspecting, run_changes, tracked, with_flags
from coach_rl.cli.run_report import SaysHowToResume, audience_of, conclude, console_sink
from coach_rl.cli.settings import Fork, Resume
from coach_rl.cli.shell import short
from coach_rl.cli.train import run_settings
from coach_rl.configuration.overrides import parse_overrides
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.printable_text import printable
from coach_rl.core.process_group import ONE_PROCESS, ProcessGroup
from coach_rl.runs.folder import in_newest_run
from coach_rl.sessions.data_parallel import follow_resumed
from coach_rl.sessions.session import fork_experiment, resume_experiment


def resume_command(resume: Resume, command: tuple[str, ...], group: ProcessGroup) -> int:
    """Continue a run; the exit code."""
    run = newest_run(resume.run)
    changes = tracked(run_changes(resume.length, resume.keeping), resume.tracker)
    changes = inspecting(changes, resume.inspect)
    if resume.on is not None:
        changes["collection.on"] = resume.on
    going_on = SaysHowToResume(group, run)
    if group.rank > 0:
        with going_on:
            follow_resumed(
                changes=changes,
                device=resume.opening.device,
                threads=resume.opening.threads,
                trust=resume.opening.trust,
                restart_episodes=resume.restart_episodes,
                group=group,
                on_start=going_on.note,
                profile=resume.output.profile,
            )
        return 0
    with going_on, closing(console_sink(resume.output)) as console:
        result = resume_experiment(
            run,
            changes=changes,
            **vars(resume.opening),
            drop_later=resume.drop_later,
            restart_episodes=resume.restart_episodes,
            command=command,
            settings=run_settings(resume.output),
            audience=audience_of(resume.output, console, going_on),
            group=group,
        )
    return conclude(resume.output, result, group)


def fork_command(fork: Fork, command: tuple[str, ...]) -> int:
    """Begin a run where another one is; the exit code."""
    if not fork.experiment_name:
        raise ConfigurationError(
            "a fork needs a name of its own, for the folder above it: --as NAME"
        )
    going_on = SaysHowToResume(ONE_PROCESS)
    overrides = parse_overrides(fork.custom_parameter)
    overrides = with_flags(overrides, run_changes(fork.length, fork.keeping))
    with going_on, closing(console_sink(fork.output)) as console:
        result = fork_experiment(
            newest_run(fork.run),
            name=fork.experiment_name,
            root=fork.experiment_path,
            overrides=inspecting(tracked(overrides, fork.tracker), fork.inspect),
            seed=fork.seed,
            **vars(fork.opening),
            restart_episodes=fork.restart_episodes,
            command=command,
            settings=run_settings(fork.output),
            audience=audience_of(fork.output, console, going_on),
        )
    return conclude(fork.output, result, ONE_PROCESS)


def newest_run(run: Path) -> Path:
    """A path in which a folder of runs is replaced by its newest run, which is printed."""
    path, runs = in_newest_run(run)
    if runs:
        which = f"newest of {len(runs)} runs" if len(runs) > 1 else "the only run"
        print(f"{which} in {short(runs[-1].parent.absolute())}: {printable(runs[-1].name)}")
    return path
