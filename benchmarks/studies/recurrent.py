"""Recurrent policies in the T-maze, with and without their recurrent layer.

    coach study run benchmarks/studies/recurrent.py --jobs 2
    coach study report benchmarks/studies/recurrent.py --write

A run's score is the mean reward of 20 greedy episodes after training: 4 at most, 1.95 without
memory.
"""

from coach_rl import Study, Variant

STEPS = {"TMaze_PPO": 100_000, "TMaze_DQN": 120_000, "TMaze_PPO_Options": 60_000}
"""Environment steps by preset."""
LONG = {"length": 50, "num_envs": 64}
"""Changes of `TMaze_PPO` for a corridor of 50 steps, whose rollouts need more turns."""


def study() -> Study:
    """Who turns to the side of the cue, with and without a recurrent layer?"""
    return Study(
        name="t_maze",
        variants=tuple(
            Variant(
                name=f"{preset}, {kind}",
                preset=preset,
                changes={"recurrence": kind},
                steps=steps,
            )
            for preset, steps in STEPS.items()
            for kind in ("gru", "none")
        )
        + tuple(
            Variant(
                name=f"TMaze_PPO at 50, {kind}",
                preset="TMaze_PPO",
                changes={**LONG, "recurrence": kind},
                steps=1_500_000,
            )
            for kind in ("gru", "none")
        ),
        seeds=range(5),
        steps=1_500_000,
        device="cpu",
        pages=("../results/recurrent.md",),
    )
