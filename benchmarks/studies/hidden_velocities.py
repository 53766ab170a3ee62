"""PPO on MuJoCo tasks without velocities: recurrent or not, shown the last change or not.

    coach study run benchmarks/studies/hidden_velocities.py --jobs 1
    coach study report benchmarks/studies/hidden_velocities.py --write

A run's score is the mean reward of 20 greedy episodes after training. Scores of the same PPO with
velocities are in benchmarks/results/ppo_mujoco.md.
"""

from coach_rl import Study, Variant

TASKS = ("half_cheetah_p", "hopper_p", "walker2d_p")
KINDS: dict[str, dict[str, object]] = {
    "min_gru, changes": {"recurrence": "min_gru", "frames": 2},
    "min_gru": {"recurrence": "min_gru"},
    "changes": {"frames": 2},
    "neither": {},
}
"""`changes`: the change since the last observation is observed too."""


def study() -> Study:
    """How much of the full-state score is reached where velocities are hidden?"""
    return Study(
        name="hidden_velocities",
        variants=tuple(
            Variant(
                name=f"{task}, {kind}",
                preset="Mujoco_PPO",
                level=task,
                changes=changes,
            )
            for kind, changes in KINDS.items()
            for task in TASKS
        ),
        seeds=range(3),
        steps=1_000_000,
        device="cpu",
        pages=("../results/recurrent.md",),
    )
