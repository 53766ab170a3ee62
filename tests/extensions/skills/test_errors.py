"""Skills that are refused."""

from coach_rl.agents.ppo_agent import PPOAgentParameters
from coach_rl.core.errors import ParameterError
from coach_rl.extensions.skills.skill_agents import SkillAgentsParameters
from tests.refusals import check_refused


def test_skills_of_one_name_are_refused():
    check_refused(
        lambda: SkillAgentsParameters(agents=(PPOAgentParameters(), PPOAgentParameters())),
        ParameterError,
        "need different names, got ['agent', 'agent']",
    )
