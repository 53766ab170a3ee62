"""Sub-goals that fit the level below: HIRO's correction, HRAC's adjacency, HIGL's landmarks.

May import what agents may. Start with `hiro_agent`, whose correction is a sampler unit, and
`sub_goal_guide`, which is a term of an actor's loss.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.hiro.hiro_agent import (
        HIROAgentParameters,
        SubGoalCorrectionParameters,
    )
    from coach_rl.extensions.hiro.landmarks import LandmarkParameters, NoveltyParameters
    from coach_rl.extensions.hiro.steps_below import StepsBelow, SubGoalRelabelling
    from coach_rl.extensions.hiro.sub_goal_guide import (
        AdjacencyParameters,
        SubGoalGuideParameters,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "AdjacencyParameters", "HIROAgentParameters", "LandmarkParameters", "NoveltyParameters",
    "StepsBelow", "SubGoalCorrectionParameters", "SubGoalGuideParameters", "SubGoalRelabelling",
]  # fmt: skip
