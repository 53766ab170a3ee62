"""Agents that learn options: a learner for each skill, option-critic, DIAYN.

May import what agents may. Start with `skill_agents`; `option_critic_agent` learns when options
end, `diayn_agent` rewards options that can be distinguished.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.skills.diayn_agent import (
        DIAYNAgentParameters,
        DiscriminatorParameters,
    )
    from coach_rl.extensions.skills.option_critic_agent import (
        OptionCriticAgentParameters,
        TerminationParameters,
    )
    from coach_rl.extensions.skills.skill_agents import SkillAgentsParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "DIAYNAgentParameters", "DiscriminatorParameters", "OptionCriticAgentParameters",
    "SkillAgentsParameters", "TerminationParameters",
]  # fmt: skip
