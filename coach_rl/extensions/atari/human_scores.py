"""Human-normalised scores of Atari games in reports of studies."""

from coach_rl.environments.atari.games import GAMES
from coach_rl.extensions.studies.reference_scores import SCALES


def human_normalised(level: str, reward: float) -> float | None:
    """The score of a game: 0 for random play, 1 for people; None for other tasks."""
    return GAMES[level].normalised(reward) if level in GAMES else None


SCALES.append(human_normalised)
