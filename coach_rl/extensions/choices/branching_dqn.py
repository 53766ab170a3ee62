"""DQN for MultiDiscrete spaces by branches (Tavakoli, Pardo and Kormushev 2018, arXiv:1711.08946).

Every choice has a branch of its own, with the values of its actions; all share the torso and, with
dueling streams, the state's value (equation 1). docs/algorithms/dqn.md lists the differences from
the paper.
"""

import torch
from torch import Tensor

from coach_rl.agents.dqn_agent import DQNAgentParameters, DQNLearner
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.core.discrete_actions import choice_sizes
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies import AnyExplorationPolicy, ExplorationPolicyParameters
from coach_rl.extensions.choices.choice_values import greedy_choices, of_choices
from coach_rl.extensions.choices.independent_choices import IndependentChoices
from coach_rl.memories.transition_batch import TransitionBatch


class BranchingLearner(DQNLearner):
    """A network with a branch of action values for each choice."""

    def __init__(self, params: DQNAgentParameters, agent: OffPolicyAgent) -> None:
        super().__init__(params, agent)
        self._sizes = choice_sizes(agent.action_space)
        self._first_actions = torch.tensor(self._first_action, device=agent.device)  # [D]

    @staticmethod
    def exploration(params: ExplorationPolicyParameters, space: Space) -> AnyExplorationPolicy:
        return IndependentChoices(params, space)

    def loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Mean over the branches of DQN's loss; all learn the mean of the targets (equation 6)."""
        network = self.network
        returns = self._returns
        algorithm = self._algorithm
        with torch.no_grad():
            judged, values = self.next_values(batch)  # [B, M, K] and [B, M]
            best = self._of(judged, greedy_choices(values, self._sizes))
            reward, discount = self._repeated(batch.reward), self._repeated(batch.discount)
            flat_best = best.flatten(0, 1)  # [B * D, K]
            target = returns.target(flat_best, reward, discount, algorithm.clip_targets)
            common = target.view_as(best).mean(dim=1, keepdim=True)
            target = common.expand_as(best).flatten(0, 1)
        taken = batch.action.to(torch.int64) - self._first_actions
        numbers = self._of(network.call(flat, batch.observation), taken)  # [B, D, K]
        loss, error = returns.loss(
            numbers.flatten(0, 1), target, self._repeated(batch.weight), algorithm.huber
        )
        return loss, {
            "q_loss": loss,
            "q_value": batch.mean(returns.mean(numbers).mean(dim=1)),
            "td_error": error.view(numbers.shape[:2]).abs().sum(dim=1),
        }

    def _of(self, numbers: Tensor, choice: Tensor) -> Tensor:
        """The numbers [B, D, K] of a choice [B, D] among those of all actions [B, M, K]."""
        each = choice.unsqueeze(1).expand(-1, numbers.shape[-1], -1)  # [B, K, D]
        return of_choices(numbers.transpose(1, 2), each, self._sizes).transpose(1, 2)

    def _repeated(self, values: Tensor) -> Tensor:
        """Values [B] once for each branch, [B * D]."""
        return values.unsqueeze(1).expand(-1, len(self._sizes)).flatten()
