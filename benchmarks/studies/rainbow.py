"""Rainbow on CartPole: three seeds of the preset.

    coach study run benchmarks/studies/rainbow.py --jobs 1
    coach study report benchmarks/studies/rainbow.py --write

A run's score is the mean reward of 20 episodes by the mean weights after training; 500 is the most.
"""

from coach_rl import Study, Variant


def study() -> Study:
    """Does Rainbow balance the pole, by noise in its network alone?"""
    return Study(
        name="rainbow",
        variants=(Variant(name="CartPole_Rainbow", preset="CartPole_Rainbow"),),
        seeds=range(3),
        device="cpu",
        pages=("../results/rainbow.md",),
    )
