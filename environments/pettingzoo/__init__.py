"""PettingZoo's parallel environments as an `Environment`: agents that act at the same time.

Imports core, Gymnasium, this room's Gymnasium adapter, and PettingZoo (the extra `pettingzoo`)
when one is built. Start with `parameters` (what can be asked for), then
`agents_as_one` (how the agents' spaces, rewards and ends become one environment's).
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.environments.pettingzoo.agents_as_one import AgentsAsOne
    from coach_rl.environments.pettingzoo.parameters import PettingZooParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["AgentsAsOne", "PettingZooParameters"]
