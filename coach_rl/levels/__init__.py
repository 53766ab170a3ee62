"""Levels: the proxy between agents and an environment, and an environment for the level above.

May import core only; sees agents and environments as the protocols of `core.interfaces`. Start with
`level_manager`.
"""

from coach_rl.levels.level_manager import LevelManager

__all__ = ["LevelManager"]
