"""Three rewards of a level, three seeds: `coach study run compared_rewards.py`, `coach report`."""

from pathlib import Path

import coach_rl as rl

HERE = Path(__file__).parent
PROGRAMS = {"progress": "potential_reward.py", "direction": "direction_reward.py"}


def study() -> rl.Study:
    """Which reward of the low level makes the top better?"""
    return rl.Study(
        name="compared_rewards",
        variants=tuple(
            rl.Variant(name=name, preset=str(HERE / file)) for name, file in PROGRAMS.items()
        ),
        seeds=range(3),
        steps=20_000,
        metric="success_rate",
        baseline="progress",
        device="cpu",
    )
