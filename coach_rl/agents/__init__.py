"""Agents: observe, act, train.

`agent` holds what all of them share (filters, row state, heat-up, transitions); each algorithm is
one file. May import core, functional, architectures, memories and exploration_policies. Start with
`agent`, then `ppo_agent`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.agents.agent import FilteredAgent
    from coach_rl.agents.agent_group import AgentGroup, AgentGroupParameters, GroupMember
    from coach_rl.agents.ddpg_agent import DDPGAgent, DDPGAgentParameters, DDPGAlgorithmParameters
    from coach_rl.agents.dqn_agent import DQNAgent, DQNAgentParameters, DQNAlgorithmParameters
    from coach_rl.agents.hac_agent import HACAgentParameters
    from coach_rl.agents.hiro_agent import (
        HIROAgent,
        HIROAgentParameters,
        SubGoalCorrectionParameters,
    )
    from coach_rl.agents.off_policy_agent import (
        LearningParameters,
        OffPolicyAgent,
        OffPolicyAgentParameters,
    )
    from coach_rl.agents.ppo_agent import PPOAgent, PPOAgentParameters, PPOAlgorithmParameters
    from coach_rl.agents.sac_agent import SACAgent, SACAgentParameters, SACAlgorithmParameters
    from coach_rl.agents.scripted_agent import ScriptedAgent, ScriptedAgentParameters
    from coach_rl.agents.td3_agent import TD3Agent, TD3AgentParameters, TD3AlgorithmParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "AgentGroup", "AgentGroupParameters", "DDPGAgent", "DDPGAgentParameters",
    "DDPGAlgorithmParameters", "DQNAgent", "DQNAgentParameters", "DQNAlgorithmParameters",
    "FilteredAgent", "GroupMember", "HACAgentParameters", "HIROAgent", "HIROAgentParameters",
    "LearningParameters", "OffPolicyAgent", "OffPolicyAgentParameters", "PPOAgent",
    "PPOAgentParameters", "PPOAlgorithmParameters", "SACAgent", "SACAgentParameters",
    "SACAlgorithmParameters", "ScriptedAgent", "ScriptedAgentParameters",
    "SubGoalCorrectionParameters", "TD3Agent", "TD3AgentParameters", "TD3AlgorithmParameters",
]  # fmt: skip
