"""Programs started in two processes by torchrun, and the runs that they leave."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import torch

from coach_rl.runs.checkpoint import list_checkpoints, read_checkpoint
from coach_rl.runs.folder import RunFolder, runs_in

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


def finished(*words, folder):
    """The exit code of torchrun with two processes, and what they printed."""
    process = started(*words, folder=folder)
    printed, _ = process.communicate(timeout=PATIENCE_SECONDS)
    return process.returncode, printed


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
