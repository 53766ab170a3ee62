"""Scores of tasks on the scale of other players, which extensions offer to `studies`.

An extension that knows a scale adds a function to `SCALES` in a module that it offers:

    [offers]
    studies = ["my_package.scales"]
"""

from collections.abc import Callable

from coach_rl.configuration.extensions import import_offers
from coach_rl.extensions.studies.scores import RunScores

SCALES: list[Callable[[str, float], float | None]] = []
"""Functions from a level and a mean reward to a score on the level's scale; None where they know
none for it."""
REWARD = "reward_mean"


def normalised_score(run: RunScores) -> float | None:
    """A run's final mean reward on the scale of its level; None where there is no such scale."""
    import_offers("studies")
    reward = run.final.get(REWARD)
    if reward is None:
        return None
    return next((each for scale in SCALES if (each := scale(run.level, reward)) is not None), None)
