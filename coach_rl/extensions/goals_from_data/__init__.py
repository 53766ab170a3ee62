"""Goals sampled from data, agents that learn to reach them, and data of mazes.

May import what graph managers may, and `data`, `offline`, `goal_worlds`. Start with `data_goals`,
which samples goals; `gciql` learns from them. `sub_goals` cuts decisions for sub-goals, from which
`hiql` learns on two levels. `point_mazes` makes data sets, `coach maze_data` writes them.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.goals_from_data.data_goals import DataGoalsParameters, GoalShares
    from coach_rl.extensions.goals_from_data.gciql import (
        GCIQLAgentParameters,
        GCIQLAlgorithmParameters,
    )
    from coach_rl.extensions.goals_from_data.hiql import (
        ExtractionParameters,
        HIQLAgentParameters,
        HIQLAlgorithmParameters,
        HIQLUpperAgentParameters,
    )
    from coach_rl.extensions.goals_from_data.point_mazes import MazeDataParameters, maze_data
    from coach_rl.extensions.goals_from_data.sub_goals import SubGoalsFromDataParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "DataGoalsParameters",
    "ExtractionParameters",
    "GCIQLAgentParameters",
    "GCIQLAlgorithmParameters",
    "GoalShares",
    "HIQLAgentParameters",
    "HIQLAlgorithmParameters",
    "HIQLUpperAgentParameters",
    "MazeDataParameters",
    "SubGoalsFromDataParameters",
    "maze_data",
]
