"""Bonuses where rewards are rare: a long chain, MiniGrid's MultiRoom-N4-S5 and KeyCorridorS3R3.

python -m benchmarks.studies.curiosity --hours 2                          # every job in turn
python -m benchmarks.studies.curiosity --hours 2 MultiRoom_count_seed0    # one of them

Trains for so many hours, then stops with a checkpoint. The next call resumes exactly, as long as
the run folders below `--root` are there. Each finished run leaves a file below
`benchmarks/results/curiosity/`: its manifest, curve, last training episodes, and 100 episodes of
the final policy, greedy and sampled. A job whose file has the same parameters is skipped.

Everything that the agents count or see is what they observe: no job has a given.
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
"""Episodes of a final evaluation, and training episodes at the end of a run that are averaged."""
SEEDS = range(3)
CHAIN = ("none", "count", "rnd", "noveld")
"""Bonuses of Chain_PPO."""
BONUSES = {
    "none": "",
    "count": "EpisodicCount(weight=0.002, first_only=True)",
    "rnd": "RND(stream=RewardStream())",
    "noveld": "NovelD(weight=0.02)",
}
"""Bonuses of MiniGrid_PPO. Counts, and NovelD's first visits, are of all that the agent observes:
its view and its direction."""
MULTI_ROOM = {"level": "MultiRoom-N4-S5", "steps": 2_000_000, "normalise_advantage": True}
CORRIDOR = {"level": "KeyCorridorS3R3", "steps": 8_000_000, "normalise_advantage": True}


def grid(name: str, seed: int, panel: dict[str, object]) -> Job:
    """A run of MiniGrid_PPO with one of the bonuses."""
    paths = f"agent.bonus={BONUSES[name]}" if BONUSES[name] else ""
    return Job(preset="MiniGrid_PPO", seed=seed, panel=panel, paths=paths)


def read(_: Job, folder: Path) -> Result:
    """The curve of a run, its last training episodes, and episodes of its final policy."""
    return {
        "greedy_curve": evaluations(folder),
        "last_training_episodes": last_episodes(folder, EPISODES),
        "final": {
            "greedy": final_episodes(folder, EPISODES),
            "sampled": final_episodes(folder, EPISODES, sampling=True),
        },
    }


STUDY = SingleRuns(
    name="curiosity",
    jobs={
        **{
            f"Chain_{bonus}_seed{seed}": Job(preset="Chain_PPO", seed=seed, panel={"bonus": bonus})
            for bonus in CHAIN
            for seed in SEEDS
        },
        **{
            f"MultiRoom_{name}_seed{seed}": grid(name, seed, MULTI_ROOM)
            for seed in SEEDS
            for name in BONUSES
        },
        **{f"KeyCorridor_{name}_seed0": grid(name, 0, CORRIDOR) for name in ("count", "none")},
    },
    read=read,
)

if __name__ == "__main__":
    STUDY.main(__doc__.splitlines()[0])
