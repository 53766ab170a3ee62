"""Atari games from pictures or memory, saved exactly; needs the extra `atari`.

Imports core and the Gymnasium adapter of this room. Start with `parameters` (the description in a
preset), then `game` (protocols, pictures, the state), `emulator` and `pictures`; `games` lists the
usual games with the scores of people.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.environments.atari.game import AtariGame
    from coach_rl.environments.atari.games import GAMES
    from coach_rl.environments.atari.parameters import AtariParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["GAMES", "AtariGame", "AtariParameters"]
