"""Agents of any kind with a recurrent layer in all their networks."""

from dataclasses import replace
from typing import Any

from coach_rl.agents.ppo_agent import PPOAgentParameters
from coach_rl.architectures.hidden_states import StatefulLayerParameters
from coach_rl.extensions.recurrent_layers.sequences import SequenceParameters

NETWORKS = ("network", "actor", "critic")
"""Parameters of agents that have a torso."""


def recurrent_agent(agent: Any, layer: StatefulLayerParameters) -> Any:
    """The agent with a layer with a hidden state in each of its networks.

    It learns from sequences: PPO without recomputed advantages, others of 64 transitions.

    Args:
        agent: The parameters of PPO, DQN, DDPG, TD3 or SAC.
        layer: Comes in front of the torso's middleware.
    """
    changes: dict[str, object] = {}
    for name in NETWORKS:
        network = getattr(agent, name, None)
        if network is not None:
            changes[name] = replace(network, torso=replace(network.torso, recurrence=layer))
    if isinstance(agent, PPOAgentParameters):
        changes["algorithm"] = replace(agent.algorithm, recompute_advantages=False)
    else:
        changes["memory"] = replace(agent.memory, draws=SequenceParameters(length=64))
    return replace(agent, **changes)
