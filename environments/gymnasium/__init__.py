"""Gymnasium environments as `Environment`s: one by one, in workers, or ready vectorised.

Imports core, Gymnasium and the inbox of this room. Start with `parameters` (the description in a
preset), then `environment` (N rows as one), `rows` (a row stepped, saved, replayed), `workers`
(rows in processes), `vector` (autoreset modes), `recipe` and `layout` (names and spaces).
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.environments.gymnasium.environment import GymnasiumEnvironment
    from coach_rl.environments.gymnasium.parameters import GymnasiumParameters
    from coach_rl.environments.gymnasium.vector import VectorEnvironment
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["GymnasiumEnvironment", "GymnasiumParameters", "VectorEnvironment"]
