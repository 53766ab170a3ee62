"""Recurrent policies: the T-maze, and MuJoCo tasks with hidden velocities.

    coach study run benchmarks/studies/recurrent.py --jobs 2
    coach study report benchmarks/studies/recurrent.py --write

`recurrent.py:hidden_velocities` is the study of the MuJoCo tasks, whose scores with the full state
are in results/ppo_mujoco.md.
"""

from coach_rl import Study, Variant

SIZES = {
    "TMaze_PPO": {10: 150_000, 50: 400_000},
    "TMaze_DQN": {10: 150_000},
    "TMaze_PPO_Options": {10: 100_000},
}
"""Environment steps by preset and length of the corridor."""
HIDDEN = ("half_cheetah_p", "hopper_p", "walker2d_p")


def study() -> Study:
    """Who turns to the side of the cue, with and without a recurrent layer?"""
    return Study(
        name="t_maze",
        variants=tuple(
            Variant(
                name=f"{preset}, length {length}, {kind}",
                preset=preset,
                changes={"length": length, "recurrence": kind},
                steps=steps,
            )
            for preset, lengths in SIZES.items()
            for length, steps in lengths.items()
            for kind in ("gru", "none")
        ),
        seeds=range(5),
        steps=150_000,
        device="cpu",
        pages=("../results/recurrent_t_maze.md",),
    )


def hidden_velocities() -> Study:
    """How much of PPO's full-state score is left where velocities are hidden?"""
    return Study(
        name="hidden_velocities",
        variants=tuple(
            Variant(
                name=f"{level}, {kind}",
                preset="Mujoco_PPO",
                level=level,
                changes={"recurrence": kind},
            )
            for level in HIDDEN
            for kind in ("gru", "none")
        ),
        seeds=(10, 11, 12),
        steps=1_000_000,
        device="cpu",
        pages=("../results/recurrent_hidden_velocities.md",),
    )
