"""PPO on the MuJoCo tasks beside the best first-party published scores.

    coach study run benchmarks/studies/ppo_mujoco.py --jobs 2
    coach study report benchmarks/studies/ppo_mujoco.py --write

The seeds are none that a setting was tuned on.
"""

from coach_rl import Published, Study, Variant

TIANSHOU = "Tianshou, 10 seeds"
TO_BEAT = {
    "half_cheetah": (5784.0, TIANSHOU),
    "hopper": (2609.0, TIANSHOU),
    "walker2d": (3589.0, TIANSHOU),
    "swimmer": (282.0, "RL Baselines3 Zoo, one model"),
    "inverted_pendulum": (1000.0, TIANSHOU),
    "inverted_double_pendulum": (9231.0, TIANSHOU),
    "reacher": (-4.1, TIANSHOU),
    "ant": (3258.0, TIANSHOU),
    "humanoid": (787.0, TIANSHOU),
}
"""Scores published for 1M steps, by task."""
SPREAD = ("half_cheetah", "swimmer")
"""Tasks on which seeds differ so much that three say little."""


def study() -> Study:
    """PPO on nine tasks."""
    return Study(
        name="mujoco_ppo",
        question="How does Mujoco_PPO score, and how do others?",
        variants=tuple(
            Variant(
                name=level,
                preset="Mujoco_PPO",
                level=level,
                seeds=range(10, 15) if level in SPREAD else None,
                published=Published(score=score, source=source),
            )
            for level, (score, source) in TO_BEAT.items()
        ),
        seeds=(10, 11, 12),
        steps=1_000_000,
        device="cpu",
        pages=("../results/ppo_mujoco.md",),
    )
