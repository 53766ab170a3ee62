"""Levels: the proxy between agents and an environment, and an environment for the level above.

May import core only; sees agents and environments as the protocols of `core.interfaces`. Start with
`level_manager`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.levels.level_manager import LevelManager
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["LevelManager"]
