"""Members of a group with critics of their own, and with central ones (MAPPO).

    coach study run benchmarks/studies/central_critics.py --jobs 2
    coach study report benchmarks/studies/central_critics.py --write

A run's score is the mean reward of 100 greedy episodes after training. A listener that ignores the
speaker gets -31.7 at best. In the game of hidden stakes 20 is the most, and 5 the score of chance.
"""

from coach_rl import Study, Variant

LONG, SHORT = 300_000, 40_000
"""Environment steps of speaker and listener, and of the game of hidden stakes."""


def study() -> Study:
    """Do agents learn better where critics see what all of them see?"""
    pairs = (
        ("SpeakerListener_MAPPO", "SpeakerListener_MAPPO", {}, LONG),
        ("SpeakerListener_PPO", "SpeakerListener_PPO", {}, LONG),
        ("hidden stakes, central", "hidden_stakes.py", {"central": True}, SHORT),
        ("hidden stakes, own", "hidden_stakes.py", {"central": False}, SHORT),
    )
    return Study(
        name="central_critics",
        variants=tuple(
            Variant(name=name, preset=preset, changes=changes, steps=steps)
            for name, preset, changes, steps in pairs
        ),
        seeds=range(5),
        steps=LONG,
        device="cpu",
        pages=("../results/central_critics.md",),
    )
