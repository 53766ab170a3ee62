"""MuJoCo tasks learned from data alone: BC, TD3+BC and IQL on medium and medium-replay data.

python -m benchmarks.mujoco_data hopper medium-replay medium --to data        # the data, once
python -m benchmarks.mujoco_data half_cheetah medium-replay medium --to data
python -m benchmarks.studies.offline --hours 2                                # every job in turn
python -m benchmarks.studies.offline --hours 2 hopper_medium_IQL_seed0        # one of them
python -m benchmarks.studies.offline --report                                 # beside d3rlpy

Each job makes 100,000 updates. Its result, a file below `benchmarks/results/offline/`, has 100
episodes of the last networks, greedy, and the curve; no checkpoint is chosen. The peer's results of
the same files are made by `benchmarks/offline_against_d3rlpy.py`. A job whose file has the same
parameters is skipped. The report compares seeds that both have learned from files with the same
checksum. ReBRAC, with its paper's batches and networks, learns from one data set.
"""

import hashlib
import json
import sys
from pathlib import Path

import numpy as np

from benchmarks.studies.single_runs import Job, Result, SingleRuns, final_episodes, records_of
from coach_rl.core.records import FloatArray
from coach_rl.extensions.studies.statistics import difference, mean

LEVELS = ("hopper", "half_cheetah")
KINDS = ("medium", "medium-replay")
METHODS = ("BC", "TD3_BC", "IQL")
SEEDS = range(3)
UPDATES = 100_000
EPISODES = 100
"""Episodes of a final evaluation."""


def job(level: str, kind: str, method: str, seed: int) -> Job:
    """A run on a data set below the working directory."""
    panel = {"level": level, "data": f"./data/{level}-{kind}.npz", "updates": UPDATES}
    if method == "ReBRAC":
        panel["quality"] = kind.replace("-", "_")
    return Job(preset=f"Mujoco_{method}", seed=seed, panel=panel)


def read(job: Job, folder: Path) -> Result:
    """The curve of a run, the checksum of its data, and episodes of its last networks."""
    curve = [
        {"updates": each["training_steps"], "return": each["scalars"]["evaluation/reward_mean"]}
        for each in records_of(folder, "evaluation")
    ]
    checksum = hashlib.sha256(Path(job.panel["data"]).read_bytes()).hexdigest()
    return {"curve": curve, "data_sha256": checksum, "final": final_episodes(folder, EPISODES)}


CELLS = [(level, kind, method) for level in LEVELS for kind in KINDS for method in METHODS]
"""Levels, data and methods that are compared with the peer's."""
STUDY = SingleRuns(
    name="offline",
    jobs={
        f"{level}_{kind}_{method}_seed{seed}": job(level, kind, method, seed)
        for seed in SEEDS
        for level, kind, method in [*CELLS, ("hopper", "medium-replay", "ReBRAC")]
    },
    read=read,
)


def report() -> None:
    """Print a row for each cell: mean returns of both, their difference, what could be detected."""
    print("level, data, method: seeds, ours, d3rlpy, difference [95 %], detectable, not below")
    for level, kind, method in CELLS:
        ours, theirs = returns(f"{level}_{kind}_{method}")
        if len(ours) < 2:
            continue
        found = difference(ours, theirs, mean)
        interval = "" if found.low is None else f" [{found.low:.0f}, {found.high:.0f}]"
        detectable = "" if found.detectable is None else f"{found.detectable:.0f}"
        verdict = found.detectable is not None and found.value >= -found.detectable
        print(
            f"{level}, {kind}, {method}: {len(ours)}, {np.mean(ours):.0f}, {np.mean(theirs):.0f}, "
            f"{found.value:+.0f}{interval}, {detectable}, {'yes' if verdict else 'no'}"
        )


def returns(cell: str) -> FloatArray:
    """Final returns [2, S] of the seeds that both have learned from equal files, ours first."""
    pairs = []
    for seed in SEEDS:
        name = f"{cell}_seed{seed}.json"
        files = [STUDY.results / each / name for each in (STUDY.name, "offline_d3rlpy")]
        if not all(file.is_file() for file in files):
            continue
        found = [json.loads(file.read_text()) for file in files]
        if found[0]["data_sha256"] == found[1]["data_sha256"]:
            pairs.append([each["final"]["return"] for each in found])
    return np.array(pairs, np.float64).reshape(-1, 2).T


if __name__ == "__main__":
    if sys.argv[1:] == ["--report"]:
        report()
    else:
        STUDY.main((__doc__ or "").splitlines()[0])
