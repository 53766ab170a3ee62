"""Levels of MiniGrid and BabyAI from symbols or pictures; needs the extra `minigrid`.

Imports core and the Gymnasium adapter of this room. Start with `parameters` (the description in a
preset), then `world` (observations, success), `view` (what an agent sees), `symbols` and
`missions`; `levels` lists their names.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.environments.minigrid.parameters import MiniGridParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["MiniGridParameters"]
