"""MuJoCo tasks learned from data alone: BC, TD3+BC and IQL on medium and medium-replay data.

python -m benchmarks.mujoco_data hopper medium-replay medium --to data        # the data, once
python -m benchmarks.mujoco_data half_cheetah medium-replay medium --to data
python -m benchmarks.studies.offline --hours 2                                # every job in turn
python -m benchmarks.studies.offline --hours 2 hopper_medium_IQL_seed0        # one of them

Each job makes 100,000 updates. Its result, a file below `benchmarks/results/offline/`, has 100
episodes of the last networks, greedy, and the curve; no checkpoint is chosen. The peer's results of
the same files are made by `benchmarks/offline_against_d3rlpy.py`. A job whose file has the same
parameters is skipped.
"""

from pathlib import Path

from benchmarks.studies.single_runs import Job, Result, SingleRuns, final_episodes, records_of

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
    return Job(preset=f"Mujoco_{method}", seed=seed, panel=panel)


def read(_: Job, folder: Path) -> Result:
    """The curve of a run, and episodes of its last networks."""
    curve = [
        {"updates": each["training_steps"], "return": each["scalars"]["evaluation/reward_mean"]}
        for each in records_of(folder, "evaluation")
    ]
    return {"curve": curve, "final": final_episodes(folder, EPISODES)}


STUDY = SingleRuns(
    name="offline",
    jobs={
        f"{level}_{kind}_{method}_seed{seed}": job(level, kind, method, seed)
        for seed in SEEDS
        for level in LEVELS
        for kind in KINDS
        for method in METHODS
    },
    read=read,
)

if __name__ == "__main__":
    STUDY.main(__doc__.splitlines()[0])
