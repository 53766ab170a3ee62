"""Scripts: agents that act by a function of the user's, or at random, and learn nothing.

May import what agents may. All is in `scripted_agent`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.scripts.scripted_agent import (
        ScriptedAgentParameters,
        UniformAgentParameters,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["ScriptedAgentParameters", "UniformAgentParameters"]
