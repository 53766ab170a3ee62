"""Programs started in two processes, by torchrun or forked, and the runs that they leave."""

import os
import signal
import socket
import subprocess
import sys
import time
from multiprocessing.connection import wait
from pathlib import Path

import numpy as np
import torch

from coach_rl.cli.main import main
from coach_rl.runs.checkpoint import list_checkpoints, read_checkpoint
from coach_rl.runs.folder import RunFolder, runs_in
from tests.faults.killed_processes import SERVER

CHECKOUT = Path(__file__).parents[3]
PATIENCE_SECONDS = 240


def started(*words, folder):
    """torchrun with two processes, which is not waited for."""
    program = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": str(CHECKOUT)}
    return subprocess.Popen(
        [*program, *map(str, words)],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def finished(program, *words, folder):
    """The higher exit code of two ranks, and what they printed.

    Both are forked from a server that has imported the engine, with what torchrun tells its
    processes by environment variables. torchrun itself takes longer to start than a short run.

    Args:
        program: A function of words; it returns the exit code, or None for 0.
        words: Its arguments.
        folder: The working directory.
    """
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    printed = folder / "printed.txt"
    given = [*map(str, words)]
    ranks = [
        SERVER.Process(target=_run_rank, args=(program, given, rank, port, str(printed)))
        for rank in range(2)
    ]
    for rank in ranks:
        rank.start()
    alive = ranks
    while alive and not any(rank.exitcode for rank in ranks):
        if not wait([rank.sentinel for rank in alive], PATIENCE_SECONDS):
            break
        alive = [rank for rank in alive if rank.is_alive()]
    for rank in alive:
        rank.kill()
        rank.join()
    return max(abs(rank.exitcode) for rank in ranks), printed.read_text()


def coach(*words):
    """The `coach` command; its exit code."""
    return main([*words])


def _run_rank(program, words, rank, port, printed):
    with Path(printed).open("a") as output:
        os.dup2(output.fileno(), 1)
        os.dup2(output.fileno(), 2)
    os.chdir(Path(printed).parent)
    os.environ |= {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "WORLD_SIZE": "2",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "TORCHELASTIC_RUN_ID": "test",
    }
    sys.exit(program(*words))


def workers_of(process):
    """The processes that torchrun has started."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(number) for number in children.split()]


def waiting(is_time, process):
    """Wait until it is time, while torchrun lives."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not is_time():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < deadline
        time.sleep(0.05)


def kill_one(process, is_time):
    """Kill a process of torchrun's as soon as it is time; the exit code of torchrun."""
    waiting(is_time, process)
    os.kill(workers_of(process)[-1], signal.SIGKILL)
    process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode


def runs_of(folder):
    """The run of each rank in the only folder of them below an experiment."""
    (place,) = folder.iterdir()
    return [RunFolder(runs_in(place / f"rank_{rank}")[-1]) for rank in range(2)]


def steps_saved(folder, rank):
    """The environment steps of a rank's checkpoints; none before there is a run."""
    checkpoints = folder.glob(f"*/rank_{rank}/*/checkpoints/step_*")
    return {int(each.name.removeprefix("step_")) for each in checkpoints}


def state_of(run):
    """The values of the agents in a run's last checkpoint, by path."""
    return dict(_flat(read_checkpoint(list_checkpoints(run.checkpoints)[-1]).state["agents"]))


def _flat(tree, path=""):
    if isinstance(tree, dict | list):
        items = tree.items() if isinstance(tree, dict) else enumerate(tree)
        for key, value in items:
            yield from _flat(value, f"{path}/{key}")
    else:
        yield path, np.asarray(tree) if isinstance(tree, torch.Tensor | np.ndarray) else tree


def different(one, other):
    """The paths whose values differ."""
    return sorted(path for path in one if not np.array_equal(one[path], other[path]))
