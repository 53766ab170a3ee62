"""Recurrent PPO on MuJoCo tasks without velocities in the observation, and without recurrence.

    coach study run benchmarks/studies/hidden_velocities.py --jobs 1
    coach study report benchmarks/studies/hidden_velocities.py --write

A run's score is the mean reward of 20 greedy episodes after training. Scores of the same PPO with
velocities are in benchmarks/results/ppo_mujoco.md.
"""

from coach_rl import Study, Variant

TASKS = ("hopper_p", "half_cheetah_p", "walker2d_p")


def study() -> Study:
    """How much of the full-state score does memory recover where velocities are hidden?"""
    return Study(
        name="hidden_velocities",
        variants=tuple(
            Variant(
                name=f"{task}, {kind}",
                preset="Mujoco_PPO",
                level=task,
                changes={"recurrence": kind},
            )
            for kind in ("gru", "none")
            for task in TASKS
        ),
        seeds=range(3),
        steps=1_000_000,
        device="cpu",
        pages=("../results/recurrent.md",),
    )
