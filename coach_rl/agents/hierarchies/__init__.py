"""Methods of hierarchies: HAC, HIRO, HRAC, HIGL, skills, DIAYN and option-critic.

May import what agents may. Start with `hiro_agent` and `sub_goal_guide`; `skill_agents` and
`option_critic_agent` choose among options.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.agents.hierarchies.diayn_agent import (
        DIAYNAgentParameters,
        DiscriminatorParameters,
    )
    from coach_rl.agents.hierarchies.hiro_agent import (
        HIROAgentParameters,
        SubGoalCorrectionParameters,
    )
    from coach_rl.agents.hierarchies.landmarks import LandmarkParameters, NoveltyParameters
    from coach_rl.agents.hierarchies.option_critic_agent import (
        OptionCriticAgentParameters,
        TerminationParameters,
    )
    from coach_rl.agents.hierarchies.skill_agents import SkillAgentsParameters
    from coach_rl.agents.hierarchies.sub_goal_guide import (
        AdjacencyParameters,
        SubGoalGuideParameters,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "AdjacencyParameters", "DIAYNAgentParameters", "DiscriminatorParameters",
    "HIROAgentParameters", "LandmarkParameters", "NoveltyParameters", "OptionCriticAgentParameters",
    "SkillAgentsParameters", "SubGoalCorrectionParameters", "SubGoalGuideParameters",
    "TerminationParameters",
]  # fmt: skip
