"""HAC: hierarchies that learn from sub-goals in hindsight, and test them.

May import what agents and graph managers may. Start with `hac_agent`; `hindsight_actions` is the
part of its memory, `sub_goal_testing` that of its levels, `hac_graph` its graph, `critic_below` a
view of the level below for planners.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.hac.critic_below import CriticBelow
    from coach_rl.extensions.hac.hac_agent import HACAgentParameters
    from coach_rl.extensions.hac.hac_graph import HACGraphManager, HACGraphParameters
    from coach_rl.extensions.hac.hindsight_actions import HindsightActionParameters
    from coach_rl.extensions.hac.sub_goal_testing import SubGoalTesting
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "CriticBelow",
    "HACAgentParameters",
    "HACGraphManager",
    "HACGraphParameters",
    "HindsightActionParameters",
    "SubGoalTesting",
]
