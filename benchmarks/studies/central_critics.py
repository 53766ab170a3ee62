"""Members of a group with critics of their own, and with central ones (MAPPO).

    coach study run benchmarks/studies/central_critics.py --jobs 2
    coach study report benchmarks/studies/central_critics.py --write

A run's score is the mean reward of 100 greedy episodes after training.
"""

from coach_rl import Study, Variant

STEPS = 300_000


def study() -> Study:
    """Do speaker and listener learn faster where critics see what both of them see?"""
    return Study(
        name="central_critics",
        variants=tuple(
            Variant(name=preset, preset=preset, steps=STEPS)
            for preset in ("SpeakerListener_MAPPO", "SpeakerListener_PPO")
        ),
        seeds=range(5),
        steps=STEPS,
        device="cpu",
        pages=("../results/central_critics.md",),
    )
