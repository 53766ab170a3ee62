"""The symmetry of ants for exported policies; the worlds are in `environments.goal_worlds`.

May import what extensions may. All is in `exported`, which is imported where policies are.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.goal_worlds.exported import Complex, pair
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["Complex", "pair"]
