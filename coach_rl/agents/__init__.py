"""Agents: observe, act, train.

`filtered_agent` is the shared half of agents that filter (row state, heat-up, transitions); each
algorithm is one file. Off-policy algorithms are learners, which `off_policy_agent` trains from a
replay memory. May import core, functional, architectures, memories and exploration_policies. Start
with `filtered_agent`, then `ppo_agent`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.agents.agent_group import AgentGroupParameters, GroupMember
    from coach_rl.agents.arbiters import EnvironmentTurns, SelectedTurns, Turns
    from coach_rl.agents.curricula import Curriculum
    from coach_rl.agents.ddpg_agent import DDPGAgentParameters, DDPGAlgorithmParameters
    from coach_rl.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
    from coach_rl.agents.filtered_agent import FilteredAgent
    from coach_rl.agents.hierarchies.diayn_agent import (
        DIAYNAgentParameters,
        DiscriminatorParameters,
    )
    from coach_rl.agents.hierarchies.hac import HACAgentParameters
    from coach_rl.agents.hierarchies.hiro_agent import (
        HIROAgentParameters,
        SubGoalCorrectionParameters,
    )
    from coach_rl.agents.hierarchies.landmarks import LandmarkParameters, NoveltyParameters
    from coach_rl.agents.hierarchies.lesson_goals import LESSONGoalSpace
    from coach_rl.agents.hierarchies.metra_goals import METRAGoalSpace
    from coach_rl.agents.hierarchies.option_critic_agent import (
        OptionCriticAgentParameters,
        TerminationParameters,
    )
    from coach_rl.agents.hierarchies.skill_agents import SkillAgentsParameters
    from coach_rl.agents.hierarchies.sub_goal_guide import (
        AdjacencyParameters,
        SubGoalGuideParameters,
    )
    from coach_rl.agents.learned_goals import GoalBatch, LearnedGoals, LearnedGoalSpace
    from coach_rl.agents.learner import ActingPolicy, Guide, Learner
    from coach_rl.agents.member_agents import AgentGroup
    from coach_rl.agents.off_policy_agent import (
        LearningParameters,
        OffPolicyAgent,
        OffPolicyAgentParameters,
    )
    from coach_rl.agents.planning.edge_costs import CriticSteps, EdgeLengths
    from coach_rl.agents.planning.graph_agent import GraphAgent, GraphAgentParameters
    from coach_rl.agents.planning.places import FarthestPoints, GridPlaces
    from coach_rl.agents.ppo_agent import PPOAgent, PPOAgentParameters, PPOAlgorithmParameters
    from coach_rl.agents.sac_agent import SACAgentParameters, SACAlgorithmParameters
    from coach_rl.agents.scripted_agent import ScriptedAgentParameters, UniformAgentParameters
    from coach_rl.agents.td3_agent import TD3AgentParameters, TD3AlgorithmParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ActingPolicy", "AdjacencyParameters", "AgentGroup", "AgentGroupParameters", "CriticSteps",
    "Curriculum", "DDPGAgentParameters", "DDPGAlgorithmParameters", "DIAYNAgentParameters",
    "DQNAgentParameters", "DQNAlgorithmParameters", "DiscriminatorParameters", "EdgeLengths",
    "EnvironmentTurns", "FarthestPoints", "FilteredAgent", "GoalBatch", "GraphAgent",
    "GraphAgentParameters", "GridPlaces", "GroupMember", "Guide", "HACAgentParameters",
    "HIROAgentParameters", "LESSONGoalSpace", "LandmarkParameters", "LearnedGoalSpace",
    "LearnedGoals", "Learner", "LearningParameters", "METRAGoalSpace", "NoveltyParameters",
    "OffPolicyAgent", "OffPolicyAgentParameters", "OptionCriticAgentParameters", "PPOAgent",
    "PPOAgentParameters", "PPOAlgorithmParameters", "SACAgentParameters", "SACAlgorithmParameters",
    "ScriptedAgentParameters", "SelectedTurns", "SkillAgentsParameters",
    "SubGoalCorrectionParameters", "SubGoalGuideParameters", "TD3AgentParameters",
    "TD3AlgorithmParameters", "TerminationParameters", "Turns", "UniformAgentParameters",
]  # fmt: skip
