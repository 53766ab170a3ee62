"""Groups: several agents on one level, graphs of levels, and trained opponents.

May import what sessions may. Start with `agent_group`, the parameters of a group; the
agents that it makes lie in the extension `members`. `arbiters` choose which member acts in a
`turn_group`. `level_graph` arranges levels as a graph: `junction`
carries directives and answers between its levels.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.groups.agent_group import AgentGroupParameters, GroupMember
    from coach_rl.extensions.groups.arbiters import EnvironmentTurns, SelectedTurns, Turns
    from coach_rl.extensions.groups.level_graph import LevelGraph
    from coach_rl.extensions.groups.trained_opponent import TrainedOpponent
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "AgentGroupParameters", "EnvironmentTurns", "GroupMember", "LevelGraph", "SelectedTurns",
    "TrainedOpponent", "Turns",
]  # fmt: skip
