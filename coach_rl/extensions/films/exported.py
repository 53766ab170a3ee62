"""The film on the card of an exported policy."""

from pathlib import Path

from coach_rl.extensions.exporting.policy_folder import FILMS
from coach_rl.extensions.films.playing import play_run
from coach_rl.sessions.opening import Opening


def film_of(run: Opening, file: Path, seed: int) -> None:
    """Film an episode of a run."""
    play_run(run, file, seed=seed)


FILMS.append(film_of)
