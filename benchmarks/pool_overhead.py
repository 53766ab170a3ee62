"""Overhead of a pool of jobs over a bare pool of processes: 100 runs of a few steps each.

    python benchmarks/pool_overhead.py [--runs 100] [--processes 2] [--rounds 3] [--write]

Both make the same runs, in processes of their own from the start of a Python program to its end.
"bare": `multiprocessing.Pool`, forked from a program that has imported torch, calls
`run_experiment` with a preset loaded once; what isn't needed to compare seeds is left out: no run
is searched for or resumed, and no table is shown. "pool": `conduct` over a `LocalPool`, as
`coach --seeds` has it. Rounds alternate, and the ratios are those of each round's pair. On a
machine that others use, too, the processor seconds are more reliable: those of all processes that a
program has begun, Linux only. Last, the memory of a process of the pool while it trains.
"""

import argparse
import contextlib
import ctypes
import os
import platform
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import psutil  # type: ignore[import-untyped]  # has no types

RESULTS = Path(__file__).parent / "results" / "pool_overhead.md"
TOY = "CartPole_PPO"
STEPS = 300
"""Environment steps of a run: one rollout, its update, and the evaluation at the end."""

BARE = """
import multiprocessing, sys
from pathlib import Path
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.sessions.settings import RunSettings
from coach_rl.runs.manifest import Origin
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.sessions.session import run_experiment
from coach_rl.core.runtime import Runtime

preset, steps, runs, processes, root = *sys.argv[1:5], Path(sys.argv[5])
PRESET = load_preset(find_preset(preset))

def run(seed):
    run_experiment(
        PRESET.configure({"steps": int(steps)}),
        Runtime(seed=seed, device="cpu"),
        name=preset,
        root=root,
        origin=Origin(preset=PRESET),
        settings=RunSettings(tensorboard=False),
    )

with multiprocessing.get_context("fork").Pool(int(processes)) as pool:
    pool.map(run, range(int(runs)), chunksize=1)
"""
POOL = """
import sys
from contextlib import closing
from pathlib import Path
from coach_rl.core.runtime import Runtime
from coach_rl.extensions.studies import Job, LocalPool
from coach_rl.extensions.studies.conduct import conduct

if __name__ == "__main__":
    preset, steps, runs, processes, root = *sys.argv[1:5], Path(sys.argv[5])
    jobs = [
        Job(
            preset=preset,
            overrides={"steps": int(steps)},
            task=Runtime(seed=seed, device="cpu"),
            name=preset,
            root=root,
            tensorboard=False,
        )
        for seed in range(int(runs))
    ]
    with closing(LocalPool(int(processes))) as pool:
        results = conduct(jobs, pool)
    assert all(result.state == "done" for result in results), results
"""


class Cost(NamedTuple):
    """Time and memory of a program."""

    seconds: float
    processor_seconds: float

    def __str__(self) -> str:
        return f"{self.seconds:.1f} s ({self.processor_seconds:.1f} s of processor)"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=100)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--write", action="store_true", help=f"write {RESULTS.name}")
    options = parser.parse_args()
    rows = [*compared(options.runs, options.processes, options.rounds)]
    text = report(options.runs, options.processes, rows, memory())
    print(text)
    if options.write:
        RESULTS.write_text(text)


def compared(runs: int, processes: int, rounds: int) -> Iterator[tuple[Cost, Cost]]:
    """Costs of the bare pool and of ours, by round."""
    for number in range(rounds):
        order = (BARE, POOL) if number % 2 == 0 else (POOL, BARE)
        cost = {program: cost_of(program, runs, processes) for program in order}
        print(f"round {number + 1}: bare {cost[BARE]}, pool {cost[POOL]}", flush=True)
        yield cost[BARE], cost[POOL]


def cost_of(program: str, runs: int, processes: int) -> Cost:
    """Seconds from the start of a program to its end, all of its runs finished."""
    adopt_orphans = 36  # PR_SET_CHILD_SUBREAPER: the server of processes outlives its program
    ctypes.CDLL(None).prctl(adopt_orphans, 1)
    with tempfile.TemporaryDirectory() as folder:
        file, root = Path(folder, "program.py"), Path(folder, "experiments")
        file.write_text(program)
        words = [TOY, str(STEPS), str(runs), str(processes), str(root)]
        start, before = time.perf_counter(), processor_seconds()
        subprocess.run([sys.executable, str(file), *words], check=True)
        seconds = time.perf_counter() - start
        with contextlib.suppress(ChildProcessError):
            while True:
                os.wait()
        finished = len(list(root.glob("*/*/summary.json")))
        assert finished == runs, f"{finished} of {runs} runs are finished"
    return Cost(seconds, processor_seconds() - before)


def processor_seconds() -> float:
    """Seconds of the processor that children have taken, those of theirs included."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def memory() -> list[tuple[str, float]]:
    """The most memory that a process of the pool has to itself, in GB, by preset."""
    return [(preset, own_memory(preset)) for preset in ("CartPole_PPO", "Mujoco_SAC")]


def own_memory(preset: str, seconds: float = 30.0) -> float:
    """Memory that a worker doesn't share with the server it was forked from, in GB."""
    from coach_rl.core.runtime import Runtime
    from coach_rl.extensions.studies import Job, LocalPool

    with tempfile.TemporaryDirectory() as folder:
        task = Runtime(seed=0, device="cpu")
        pool = LocalPool(1)
        future = pool.submit(
            Job(preset=preset, task=task, name="memory", root=Path(folder), tensorboard=False)
        )
        most, end = 0.0, time.monotonic() + seconds
        while time.monotonic() < end and not future.done():
            for process in psutil.Process().children(recursive=True):
                if os.getpgid(process.pid) == process.pid:  # a worker has a group of its own
                    most = max(most, process.memory_full_info().uss / 1e9)
            time.sleep(0.5)
        pool.close(cancel=True)
    return most


def report(
    runs: int, processes: int, rows: list[tuple[Cost, Cost]], held: list[tuple[str, float]]
) -> str:
    ratios = [statistics.median(pool[part] / bare[part] for bare, pool in rows) for part in (0, 1)]
    return "\n".join(
        [
            "# What a pool of jobs costs",
            "",
            f"{runs} runs of `{TOY}` over {STEPS} environment steps each, {processes} at once, as "
            "whole programs from start to end:",
            "`python benchmarks/pool_overhead.py --write`. "
            f"{platform.processor() or platform.machine()}, {os.cpu_count()} cores, Python "
            f"{platform.python_version()}.",
            "",
            "| round | bare pool of processes | `conduct` over a `LocalPool` |",
            "| --- | --- | --- |",
            *(f"| {number} | {bare} | {pool} |" for number, (bare, pool) in enumerate(rows, 1)),
            "",
            f"Median ratio {ratios[0]:.2f} in time, {ratios[1]:.2f} in processor seconds, with "
            f"{os.getloadavg()[2]:.0f} processes on the",
            "machine that wanted a core, on average: where that is more than the cores, only the "
            "processor seconds count.",
            "",
            "The bare pool calls `run_experiment` in processes forked from the program itself. The "
            "pool of jobs searches for each",
            "run first, knows it by its parameters, begins it once, and has a server of processes "
            "that imports torch besides.",
            "",
            "Memory that a worker has to itself after half a minute of training:",
            "",
            "| preset | GB |",
            "| --- | --- |",
            *(f"| `{preset}` | {gigabytes:.2f} |" for preset, gigabytes in held),
            "",
        ]
    )


if __name__ == "__main__":
    main()
