"""Studies on a Ray cluster whose workers, machines and driver are killed, compared with quiet ones.

    PYTHONPATH=tests/golden:tests/faults python tests/extensions/studies/faults/killed_studies.py \\
        --kills 30

gives out four variants with five seeds each on a cluster of two machines, kills at random moments a
worker, a machine (another joins instead) or the driver (the same program is started again), and
compares every run with that of an undisturbed pool of processes. `--quiet` kills nothing,
and runs the study a third time, by submitit's executor for one machine.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import ray
from golden_runs import RUNS
from killed_runs import difference, story_of
from ray.cluster_utils import Cluster

from coach_rl.configuration.overrides import parse_overrides
from coach_rl.core.runtime import Runtime
from coach_rl.extensions.studies.clusters.ray_cluster import RayCluster
from coach_rl.extensions.studies.clusters.slurm import Slurm
from coach_rl.extensions.studies.conduct import conduct
from coach_rl.extensions.studies.job import Job, JobResult
from coach_rl.extensions.studies.places import LocalPool

MEMORY = 80_000_000
"""Bytes of a machine's object store."""

VARIANTS = {
    "CartPole": (RUNS["CartPole_PPO"], 3000),
    "Pendulum": (RUNS["Pendulum_SAC"], 600),
    "maze, flat": (replace(RUNS["Pendulum_HAC, flat"], preset="PointMaze_HAC"), 1000),
    "maze, two levels": (RUNS["PointMaze_HAC"], 800),
}
"""Presets with changes by which they learn early, and environment steps that take some seconds."""

ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_worker_niceness": "0",  # 15 by default: where others compute, workers hardly start
}
"""Settings of a cluster of this machine alone."""


def jobs(
    root: Path,
    *,
    seeds: Sequence[int] = range(5),
    share: float = 1.0,
    variants: Sequence[str] = tuple(VARIANTS),
) -> list[Job]:
    """Variants with these seeds, of a share of their steps."""
    made = []
    for name in variants:
        run, steps = VARIANTS[name]
        training = f"schedule.training={int(steps * share)}"
        often = "schedule.progress_interval=20; checkpoints.every_steps=20; checkpoints.keep_last=3"
        made += [
            Job(
                preset=run.preset,
                overrides=parse_overrides(f"{run.changes}; {training}; {often}"),
                task=Runtime(seed=seed, device="cpu", threads=1),
                name="study",
                root=root,
                labels={"study": "study", "variant": name},
            )
            for seed in seeds
        ]
    return made


def stories(results: Sequence[JobResult]) -> list[dict[str, object]]:
    """What each run has left behind, but for its checkpoints, of which signals make more."""
    assert all(result.state == "done" for result in results), results
    folders = [result.folder for result in results if result.folder is not None]
    assert len({*folders}) == len(results)
    return [story_of(folder, checkpoints_too=False) for folder in folders]


def differences(found: Sequence[JobResult], expected: Sequence[JobResult]) -> list[str]:
    """Where runs differ from those that were left alone; a text for each, empty where nowhere."""
    pairs = zip(stories(found), stories(expected), strict=True)
    return [difference(one, other) for one, other in pairs]


@contextmanager
def cluster(machines: int = 2) -> Iterator[Cluster]:
    """A Ray cluster on this machine, whose head runs no jobs, with machines of one core."""
    before = dict(os.environ)
    os.environ.update(ENVIRONMENT)
    made = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": MEMORY},
    )
    try:
        for _ in range(machines):
            add_machine(made)
        yield made
    finally:
        ray.shutdown()
        made.shutdown()
        os.environ.clear()
        os.environ.update(before)


def add_machine(made: Cluster) -> Any:
    """One more machine of one core."""
    return made.add_node(num_cpus=1, object_store_memory=MEMORY, wait=False)


class Driver:
    """The program that gives out the jobs, started again when it has been killed.

    Args:
        address: The cluster's.
        root: The folder of all experiments.
        seeds: Seeds of each variant.
        share: Of the variants' steps.
    """

    def __init__(self, address: str, root: Path, *, seeds: int, share: float) -> None:
        here = [address, str(root), str(seeds), str(share)]
        self._words = [sys.executable, __file__, "--driver", *here]
        self._environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._output = root / "driver.txt"
        root.mkdir(parents=True, exist_ok=True)
        self._start()

    def _start(self) -> None:
        with self._output.open("a") as output:
            self.process = subprocess.Popen(
                self._words, stdout=output, stderr=output, env=self._environment
            )

    def kill(self) -> None:
        """Kill it, and start it again."""
        self.process.kill()
        self.process.wait()
        self._start()

    def said(self) -> str:
        """What it has said."""
        return self._output.read_text()


def drive(address: str, root: str, seeds: str, share: str) -> int:
    """Give out the jobs, as the driver's process."""
    with closing(RayCluster(address)) as executor:
        given = jobs(Path(root), seeds=range(int(seeds)), share=float(share))
        results = conduct(given, executor)
    print([(result.state, result.error) for result in results if result.state != "done"])
    return int(any(result.state != "done" for result in results))


def workers() -> list[psutil.Process]:
    """The processes of this program's cluster that run a job now."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):
            if "run_marked_job" in "".join(process.cmdline()[:1]):
                found.append(process)
    return found


def kill_something(made: Cluster, driver: Driver, rng: np.random.Generator) -> str:
    """Kill a worker, a machine or the driver; what it was, or nothing where none runs."""
    kind = str(rng.choice(["worker", "worker", "machine", "driver"]))
    if kind == "driver":
        driver.kill()
    elif kind == "machine":
        machines = [*made.worker_nodes]
        made.remove_node(machines[int(rng.integers(len(machines)))], allow_graceful=False)
        add_machine(made)
    elif running := workers():
        running[int(rng.integers(len(running)))].kill()
    else:
        return ""
    return kind


def campaign(
    root: Path, *, kills: int, seed: int, seeds: int, share: float = 1.0
) -> tuple[Counter[str], list[str]]:
    """Kill so often while the study runs; what was killed, and where its runs differ."""
    rng = np.random.default_rng(seed)
    killed = Counter[str]()
    with cluster() as made:
        driver = Driver(made.address, root / "killed", seeds=seeds, share=share)
        while driver.process.poll() is None:
            time.sleep(float(rng.uniform(0.5, 3)))
            if killed.total() < kills and workers():
                killed[kill_something(made, driver, rng)] += 1
                print(dict(killed), flush=True)
        assert driver.process.returncode == 0, driver.said()
    with closing(LocalPool(2)) as pool:
        quiet = conduct(jobs(root / "quiet", seeds=range(seeds), share=share), pool)
        again = conduct(jobs(root / "killed", seeds=range(seeds), share=share), pool)
    made_runs = list((root / "killed").glob("study/*/manifest.json"))
    assert len(made_runs) == len(quiet), "a run was made twice"
    return +killed, differences(again, quiet)


def three_ways(root: Path, *, seeds: int, share: float) -> dict[str, list[str]]:
    """Where the runs of a cluster, and of submitit's local executor, differ from a pool's."""

    def run(place: LocalPool | RayCluster | Slurm, name: str) -> Sequence[JobResult]:
        with closing(place):
            return conduct(jobs(root / name, seeds=range(seeds), share=share), place)

    quiet = run(LocalPool(2), "pool")
    found = {"submitit": differences(run(Slurm(cluster="local"), "submitit"), quiet)}
    with cluster() as made:
        found["ray"] = differences(run(RayCluster(made.address), "ray"), quiet)
    return found


def main() -> int:
    """Kill, compare, and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=30, help="how often (default: 30)")
    parser.add_argument("--seed", type=int, default=0, help="seed of the moments (default: 0)")
    parser.add_argument("--seeds", type=int, default=5, help="runs of a variant (default: 5)")
    parser.add_argument("--share", type=float, default=1.0, help="of the variants' steps")
    parser.add_argument("--quiet", action="store_true", help="kill nothing; run it three ways")
    parser.add_argument("--driver", nargs=4, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.driver:
        return drive(*given.driver)
    if given.quiet:
        with tempfile.TemporaryDirectory() as root:
            found = three_ways(Path(root), seeds=given.seeds, share=given.share)
        for place, texts in found.items():
            print(f"{place}: {len(texts)} runs; different: {[*filter(None, texts)]}")
        return int(any(any(texts) for texts in found.values()))
    with tempfile.TemporaryDirectory() as root:
        killed, different = campaign(
            Path(root),
            kills=given.kills,
            seed=given.seed,
            seeds=given.seeds,
            share=given.share,
        )
    print(
        f"killed: {dict(killed)}; runs: {len(different)}; different: {[*filter(None, different)]}"
    )
    return int(any(different) or killed.total() < given.kills)


if __name__ == "__main__":
    sys.exit(main())
