"""PPO on the MuJoCo tasks beside the best first-party published scores.

    coach study run benchmarks/studies/ppo_mujoco.py --jobs 2
    coach study report benchmarks/studies/ppo_mujoco.py --write

`ppo_mujoco.py:contact` is the study of Ant, Humanoid, HumanoidStandup and Pusher,
`ppo_mujoco.py:swimmer` that of Swimmer's own settings.

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
}
"""Scores published for 1M steps, by task."""
CONTACT = {"ant": (3258.0, TIANSHOU), "humanoid": (787.0, TIANSHOU)}
"""The same, of tasks with many contacts."""
SPREAD = ("half_cheetah", "swimmer")
"""Tasks on which seeds differ so much that three are too few."""


def study() -> Study:
    """PPO on seven tasks."""
    return _study("mujoco_ppo", tuple(TO_BEAT))


def contact() -> Study:
    """PPO on Ant, Humanoid, HumanoidStandup and Pusher."""
    return _study("mujoco_ppo_contact", ("ant", "humanoid", "humanoid_standup", "pusher"))


def swimmer() -> Study:
    """PPO on Swimmer, as shipped and with the settings of other tasks for noise and advantages."""
    before = {
        "agent.algorithm.normalise_advantage": False,
        "agent.network.initial_log_std": -0.5,
    }
    return Study(
        name="mujoco_ppo_swimmer",
        question="Do normalised advantages and more noise at first teach every seed to swim?",
        variants=(
            Variant(name="as shipped", preset="Mujoco_PPO", level="swimmer"),
            Variant(name="neither", preset="Mujoco_PPO", level="swimmer", changes=before),
        ),
        baseline="neither",
        seeds=(*range(10, 15), *range(30, 35)),
        steps=1_000_000,
        device="cpu",
        pages=("../results/ppo_mujoco.md",),
    )


def _study(name: str, levels: tuple[str, ...]) -> Study:
    published = TO_BEAT | CONTACT
    return Study(
        name=name,
        question="How does Mujoco_PPO score, and how do others?",
        variants=tuple(
            Variant(
                name=level,
                preset="Mujoco_PPO",
                level=level,
                seeds=range(10, 15) if level in SPREAD else None,
                published=Published(score=published[level][0], source=published[level][1])
                if level in published
                else None,
            )
            for level in levels
        ),
        seeds=(10, 11, 12),
        steps=1_000_000,
        device="cpu",
        pages=("../results/ppo_mujoco.md",),
    )
