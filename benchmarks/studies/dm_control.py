"""Tasks of the DeepMind Control Suite: cheetah-run from state, cartpole-swingup from pictures.

python -m benchmarks.studies.dm_control --hours 2                       # every job in turn
python -m benchmarks.studies.dm_control --hours 2 pixels_shifts_seed0   # one of them

Trains for so many hours, then stops with a checkpoint. The next call resumes exactly, as long as
the run folders below `--root` are there. Each finished run leaves a file below
`benchmarks/results/dm_control/`: its manifest, curve, last training episodes, and 100 episodes of
the final network, greedy. A job whose file has the same parameters is skipped.
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

EPISODES = 100
"""Episodes of a final evaluation."""
LAST = 10
"""Training episodes at the end of a run that are averaged."""
PUBLISHED = {
    "cartpole-swingup": {
        "DrQ from pictures, 100k frames (Kostrikov et al. 2020)": 759.0,
        "CURL from pictures, 100k frames (Laskin et al. 2020)": 582.0,
    },
    "cheetah-run": {},
}
"""Returns on the same task after as many frames, where published."""


def pixels(seed: int, shift: int) -> Job:
    """100,000 frames of cartpole-swingup from pictures, with random shifts or none."""
    panel = {
        "level": "cartpole-swingup",
        "steps": 12_500,
        "action_repeat": 8,
        "shift": shift,
        "memory": 12_500,
    }
    return Job(preset="DMControl_Pixels_SAC", seed=seed, panel=panel)


def cheetah(seed: int) -> Job:
    """500,000 frames of cheetah-run from its state."""
    panel = {"level": "cheetah-run", "steps": 500_000, "action_repeat": 1}
    return Job(preset="DMControl_SAC", seed=seed, panel=panel)


def read(job: Job, folder: Path) -> Result:
    """The curve of a run, its last training episodes, and whole episodes of its final networks."""
    return {
        "published": PUBLISHED[job.panel["level"]],
        "curve": evaluations(folder, frames_per_step=job.panel["action_repeat"]),
        "last_training_episodes": last_episodes(folder, LAST),
        "final": final_episodes(folder, EPISODES),
    }


STUDY = SingleRuns(
    name="dm_control",
    jobs={
        "pixels_shifts_seed0": pixels(0, 4),
        "pixels_plain_seed0": pixels(0, 0),
        "pixels_shifts_seed1": pixels(1, 4),
        "pixels_plain_seed1": pixels(1, 0),
        "cheetah_seed0": cheetah(0),
        "cheetah_seed1": cheetah(1),
    },
    read=read,
)

if __name__ == "__main__":
    STUDY.main(__doc__.splitlines()[0])
