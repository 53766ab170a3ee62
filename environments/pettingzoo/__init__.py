"""PettingZoo's environments as an `Environment`: agents that act at the same time, or in turn.

Imports core, Gymnasium, this room's Gymnasium adapter, and PettingZoo (the extra `pettingzoo`)
when one is built.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.environments.pettingzoo.parallel import PettingZooParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["PettingZooParameters"]
