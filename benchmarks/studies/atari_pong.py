"""Pong from pictures under protocol A: PPO and DQN to the step counts of published curves.

python -m benchmarks.studies.atari_pong --hours 2             # every job in turn, for two hours
python -m benchmarks.studies.atari_pong --hours 2 PPO_seed0   # one of them

Trains for so many hours, then stops with a checkpoint. The next call resumes exactly, whichever
machine it runs on, as long as the run folders below `--root` are there. Each finished run leaves a
file below `benchmarks/results/atari_pong/`: its manifest, curve, last training games, and 100 whole
games of the final network, greedy and sampled. A job whose file has the same parameters is skipped.
"""

from pathlib import Path
from typing import Any

import coach_rl as rl
from benchmarks.studies.single_runs import (
    Job,
    Result,
    SingleRuns,
    evaluations,
    final_episodes,
    last_episodes,
)

FRAMES_PER_STEP = 4
EPISODES = 100
"""Games of a final evaluation, and training games at the end of a run that are averaged."""
PUBLISHED = {
    "SLM-Lab 5, PPO, sticky actions, 10M steps": 16.7,
    "MR.Q, sticky actions, 2.5M steps, 10 seeds": 18.0,
}
"""Returns in Pong under the same protocol."""
SHORT_DQN = {"epsilon_steps": 250_000, "learning_starts": 20_000}
"""Exploration and first updates of runs of 1.5M steps instead of 10M."""


def job(preset: str, seed: int, steps: int, **panel: Any) -> Job:
    """A run of so many environment steps; four times as many frames."""
    return Job(preset=preset, seed=seed, panel={"level": "pong", "steps": steps, **panel})


def read(_: Job, folder: Path) -> Result:
    """The curve of a run, its last training games, and whole games of its final networks."""
    final = {
        name: final_episodes(folder, EPISODES, sampling=sampling)
        for name, sampling in (("greedy", False), ("sampled", True))
    }
    for found in final.values():
        found["human_normalised"] = rl.GAMES["pong"].normalised(found["return"])
    return {
        "published": PUBLISHED,
        "curve": evaluations(folder, frames_per_step=FRAMES_PER_STEP),
        "last_training_games": last_episodes(folder, EPISODES),
        "final": final,
    }


STUDY = SingleRuns(
    name="atari_pong",
    jobs={
        "PPO_seed0": job("Atari_PPO", 0, 2_500_000),
        "PPO_seed1": job("Atari_PPO", 1, 1_500_000),
        "DQN_seed0": job("Atari_DQN", 0, 1_500_000, **SHORT_DQN),
    },
    read=read,
)

if __name__ == "__main__":
    STUDY.main(__doc__.splitlines()[0])
