"""Agents: observe, act, train.

`filtered_agent` is the shared half of agents that filter (row state, heat-up, transitions); each
algorithm is one file. Off-policy algorithms are learners, which `off_policy_agent` trains from a
replay memory. May import core, functional, architectures, memories and exploration_policies. Start
with `filtered_agent`, then `ppo_agent`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.agents.actor_critic_learner import ActorTermParameters
    from coach_rl.agents.ddpg_agent import DDPGAgentParameters, DDPGAlgorithmParameters
    from coach_rl.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
    from coach_rl.agents.filtered_agent import FilteredAgent
    from coach_rl.agents.learner import ActingPolicy, ActorTerm, Learner
    from coach_rl.agents.off_policy_agent import (
        LearningParameters,
        OffPolicyAgent,
        OffPolicyAgentParameters,
    )
    from coach_rl.agents.ppo_agent import PPOAgent, PPOAgentParameters, PPOAlgorithmParameters
    from coach_rl.agents.sac_agent import SACAgentParameters, SACAlgorithmParameters
    from coach_rl.agents.td3_agent import TD3AgentParameters, TD3AlgorithmParameters
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ActingPolicy", "ActorTerm", "ActorTermParameters", "DDPGAgentParameters",
    "DDPGAlgorithmParameters", "DQNAgentParameters", "DQNAlgorithmParameters", "FilteredAgent",
    "Learner", "LearningParameters", "OffPolicyAgent", "OffPolicyAgentParameters", "PPOAgent",
    "PPOAgentParameters", "PPOAlgorithmParameters", "SACAgentParameters", "SACAlgorithmParameters",
    "TD3AgentParameters", "TD3AlgorithmParameters",
]  # fmt: skip
