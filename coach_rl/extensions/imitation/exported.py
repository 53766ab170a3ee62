"""Policies without a value function, as an exported policy acts."""

from torch import Tensor

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.exploration_policies.samplers import sampler_for
from coach_rl.extensions.exporting.policies import KINDS, DistributionPolicy
from coach_rl.extensions.imitation.policy_network import Policy


class ClonedPolicy(DistributionPolicy):
    """The mean, in the bounds of its Box, or the most likely actions."""

    def __init__(self, network: Policy, agent: OffPolicyAgent) -> None:
        sampler = sampler_for(agent.action_space)
        log_std = network.bounded_log_std
        fixed = None if log_std is None else log_std.detach()
        super().__init__(network.torso, network.head, fixed, sampler, agent)
        self._network = network

    def head(self, features: Tensor) -> Tensor:
        """Means and logits [R, P] of features."""
        return self._network.squashed(super().head(features))


KINDS[Policy] = ClonedPolicy
