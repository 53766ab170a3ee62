"""The `coach` command in processes of their own, which get a signal at a chosen moment.

Processes are forked from a server that has imported the engine, so that one starts in an instant.
"""

import json
import multiprocessing
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    [
        "coach_rl.cli.main",
        "coach_rl.environments.gymnasium.parameters",
        "coach_rl.sessions.resuming",
        "coach_rl.sessions.runner",
        "torch._dynamo",
        "torch.utils.tensorboard",
    ]
)

LONGEST = 300.0
"""Seconds after which a process is taken for hanging."""
OPERATIONS = {"open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.truncate", "os.link"}
"""Python's audit events of operations that change files."""


@dataclass(frozen=True)
class Moment:
    """A moment at which a process gets a signal."""

    kind: Literal["operation", "evaluation", "seconds"]
    at: float
    """Number of the file operation, number of the step in an evaluation, or seconds."""
    sent: signal.Signals = signal.SIGKILL


@dataclass(frozen=True)
class Ended:
    """How a process ended."""

    code: int
    """Its exit code; -9 where it was killed."""
    operations: tuple[str, ...]
    """The file operations within the experiment's folder, in order."""
    evaluation_steps: int
    """Steps of all evaluations together."""
    seconds: float
    output: str
    """What it printed."""


def coach(
    words: Sequence[str],
    folder: Path,
    killed: Moment | None = None,
    *,
    most_bytes: int | None = None,
) -> Ended:
    """Run `coach` with these words to its end, or to the moment at which it is killed.

    Args:
        words: The command line.
        folder: The folder whose file operations are counted; notes are put beside it.
        killed: When it gets a signal; None never.
        most_bytes: Size at which a file cannot grow any more, as if the disk were full; None: no
            limit.
    """
    notes = folder.parent / f"{folder.name}.notes"
    process = SERVER.Process(
        target=_child, args=([*words], str(folder), str(notes), killed, most_bytes)
    )
    started = time.monotonic()
    process.start()
    process.join(killed.at if killed is not None and killed.kind == "seconds" else None)
    if process.is_alive() and killed is not None and process.pid is not None:
        os.kill(process.pid, killed.sent)
    process.join(LONGEST)
    assert not process.is_alive(), f"{words} hangs after {killed}"
    seconds = time.monotonic() - started
    counted = notes.with_suffix(".json")
    found = json.loads(counted.read_text()) if counted.exists() else {}
    counted.unlink(missing_ok=True)
    assert process.exitcode is not None
    output = notes.with_suffix(".out")
    return Ended(
        code=process.exitcode,
        operations=tuple(found.get("operations", ())),
        evaluation_steps=found.get("evaluation_steps", 0),
        seconds=seconds,
        output=output.read_text() if output.exists() else "",
    )


def _child(
    words: list[str], folder: str, notes: str, killed: Moment | None, most_bytes: int | None
) -> None:
    with Path(notes).with_suffix(".out").open("w") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background ignores it,
    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # and nohup this one
    from coach_rl.cli.main import main

    if most_bytes is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, resource.RLIM_INFINITY))
    operations = _count_operations(folder, killed)
    evaluated = _count_evaluation_steps(killed)
    code = main(words)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    counted = {"operations": operations, "evaluation_steps": evaluated[0]}
    Path(notes).with_suffix(".json").write_text(json.dumps(counted))
    sys.stdout.flush()
    sys.exit(code)


def _count_operations(folder: str, killed: Moment | None) -> list[str]:
    operations: list[str] = []
    number = int(killed.at) if killed is not None and killed.kind == "operation" else None

    def hook(event: str, arguments: tuple[object, ...]) -> None:
        if event not in OPERATIONS or not _changes(event, arguments, folder):
            return
        operations.append(f"{event} {Path(str(arguments[0])).relative_to(folder)}")
        if killed is not None and len(operations) == number:
            os.kill(os.getpid(), killed.sent)

    sys.addaudithook(hook)
    return operations


def _changes(event: str, arguments: tuple[object, ...], folder: str) -> bool:
    if not str(arguments[0]).startswith(f"{folder}/"):
        return False
    if event != "open":
        return True
    flags = arguments[2]
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT))


def _count_evaluation_steps(killed: Moment | None) -> list[int]:
    """Count how often an evaluation asks whether it shall stop, which it does at each step."""
    from coach_rl.graph_managers import evaluations as evaluation_schedule

    steps, play = [0], evaluation_schedule.play
    number = int(killed.at) if killed is not None and killed.kind == "evaluation" else None

    def counted(*arguments: object, is_stopped: Callable[[], bool], **named: object) -> object:
        def asked() -> bool:
            steps[0] += 1
            if killed is not None and steps[0] == number:
                os.kill(os.getpid(), killed.sent)
            return is_stopped()

        return play(*arguments, is_stopped=asked, **named)

    evaluation_schedule.play = counted
    return steps


def moments(whole: Ended, rng: np.random.Generator) -> dict[str, Moment]:
    """A random moment of each kind within a run.

    Args:
        whole: The run when it wasn't killed.
        rng: Draws the moments.
    """
    numbered = list(enumerate(whole.operations, start=1))
    saving = [number for number, name in numbered if "checkpoints" in name]
    early = [number for number, name in numbered if number <= min(saving, default=1)]
    return {
        "at a file operation": Moment("operation", int(rng.integers(1, len(numbered) + 1))),
        "writing a checkpoint": Moment("operation", int(rng.choice(saving))),
        "before the first checkpoint": Moment("operation", int(rng.choice(early))),
        "in an evaluation": Moment("evaluation", int(rng.integers(1, whole.evaluation_steps + 1))),
        "at a random time": Moment("seconds", float(rng.uniform(0, whole.seconds))),
    }
