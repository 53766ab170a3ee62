"""DoorKey-8x8 of MiniGrid by PPO without a bonus: success of sampled and of greedy policies.

python -m benchmarks.studies.minigrid --hours 1               # every job in turn, for one hour
python -m benchmarks.studies.minigrid --hours 1 DoorKey_seed0 # one of them

Trains for so many hours, then stops with a checkpoint. The next call resumes exactly, whichever
machine it runs on, as long as the run folders below `--root` are there. Each finished run leaves a
file below `benchmarks/results/minigrid/`: its manifest, curves, and 200 episodes of the final
network, greedy and sampled. A job whose file has the same parameters is skipped.
"""

from pathlib import Path

from benchmarks.studies.single_runs import (
    Job,
    Result,
    SingleRuns,
    evaluations,
    final_episodes,
    last_episodes,
)

EPISODES = 200
"""Episodes of a final evaluation, and training episodes at the end of a run that are averaged."""
DOOR = {"level": "DoorKey-8x8", "steps": 1_000_000}


def read(_: Job, folder: Path) -> Result:
    """The curve of a run, its last training episodes, and episodes of its final network."""
    return {
        "greedy_curve": evaluations(folder),
        "last_training_episodes": last_episodes(folder, EPISODES),
        "final": {
            "sampled": final_episodes(folder, EPISODES, sampling=True),
            "greedy": final_episodes(folder, EPISODES),
        },
    }


STUDY = SingleRuns(
    name="minigrid",
    jobs={
        f"DoorKey_seed{seed}": Job(preset="MiniGrid_PPO", seed=seed, panel=DOOR)
        for seed in range(3)
    },
    read=read,
)

if __name__ == "__main__":
    STUDY.main(__doc__.splitlines()[0], hours=1.0)
