"""HAC, and goals that are learned.

May import what agents may. Start with `hac`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.agents.hierarchies.hac import HACAgentParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["HACAgentParameters"]
