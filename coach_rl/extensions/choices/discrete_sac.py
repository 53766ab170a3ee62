"""SAC in Discrete and MultiDiscrete spaces (Christodoulou 2019, arXiv:1910.07207).

The critics have a value for every action, so expectations over the policy are sums, not samples.
Several choices are independent; the critics have a branch for each, as in `branching_dqn`.
docs/algorithms/sac.md lists every detail and its source.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from coach_rl.agents.learner import ActingPolicy
from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.sac_agent import SACAgentParameters, SoftLearner
from coach_rl.architectures.continuous_control import Actor, CriticEnsemble, CriticParameters
from coach_rl.architectures.gradient_step import Numbers
from coach_rl.architectures.numpy_policy import torch_forward
from coach_rl.architectures.q_network import discrete_choices
from coach_rl.core.discrete_actions import first_action
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import ALLOWED, Array, FloatArray, Observation
from coach_rl.core.row_noise import RowNoise
from coach_rl.extensions.choices.choice_values import log_probabilities, of_choices, split_choices
from coach_rl.extensions.choices.independent_choices import IndependentChoices
from coach_rl.extensions.choices.softmax import Categorical
from coach_rl.functional.temporal_difference import critic_loss, td_target
from coach_rl.memories.batches import Tensors
from coach_rl.memories.transition_batch import TransitionBatch


class ChoiceCritics(CriticEnsemble):
    """K action-value functions of M actions side by side, which see no action: values [K, B, M]."""

    def forward(self, observation: dict[str, Tensor]) -> Tensor:
        return self.bounded(self.values(observation, None, self.members))


class DiscreteSACLearner(SoftLearner[TransitionBatch]):
    """A policy over actions that is rewarded for its entropy, and two critics of every action.

    Args:
        params: The agent's parameters.
        agent: The agent that learns by it.
    """

    def __init__(self, params: SACAgentParameters, agent: OffPolicyAgent) -> None:
        space = agent.action_space
        self.sizes = discrete_choices(space)
        _require_discrete_settings(params, agent, self.sizes)
        self.output_rules = agent.output_rules
        first = first_action(space).reshape(-1)
        self._first_actions = torch.from_numpy(first).to(agent.device)  # [D]
        seen, _, rng, normaliser = agent.network_arguments
        count = sum(self.sizes)  # M
        actor = Actor(params.actor, seen, count, rng, normaliser)
        critics = ChoiceCritics(params.critic, seen, None, count, rng, normaliser, members=2)
        super().__init__(params, agent, actor=actor, critics=critics)
        exploration = (
            Categorical().build(space)
            if not space.shape
            else IndependentChoices(Categorical(), space)
        )
        self.acting: ActingPolicy[RowNoise] = ActingPolicy(self.policy, exploration)

    def learn_from_batch(self, batch: TransitionBatch) -> Numbers:
        return self.engine.step(batch)

    def values(self, observation: Observation, action: Array) -> FloatArray:
        """The lower critic's values [R] of actions, of several choices their mean."""

        def lower(seen: Tensors) -> Tensor:
            values = self.critics.call(self.critics.online, seen).amin(dim=0)
            return of_choices(values, self._choices(chosen), self.sizes).mean(dim=-1)

        chosen = torch.from_numpy(action).to(self.critics.online.device)
        return torch_forward(lower, self.critics.online.device)(observation)

    def critic_loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """Both critics towards the lower one's soft value, equation 10; mean over choices."""
        after = batch.next_observation
        count = len(self.sizes)
        with torch.no_grad():
            log_prob = self._log_prob(self.actor.online, after)
            prob = log_prob.exp()
            next_values = self.critics.call(self.critics.target, after)
            entropy = -(prob * log_prob).sum(dim=-1)
            value = (prob * next_values.amin(dim=0)).sum(dim=-1) / count
            soft_value = value + self.temperature.online.exp() * entropy
            target = td_target(batch.reward, batch.discount, soft_value)
        values = self.critics.call(flat, batch.observation)  # [2, B, M]
        choice = self._choices(batch.action).expand(2, -1, -1)
        taken = of_choices(values, choice, self.sizes).movedim(-1, 1).flatten(0, 1)  # [2 * D, B]
        loss, metrics = critic_loss(
            taken,
            target,
            batch.weight / count,
            self._algorithm.huber,
            batch.summary,
        )
        return loss, metrics | {"td_error": count * metrics["td_error"]}

    def actor_loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """The policy's expectation of alpha log pi - min Q, equation 12; sum over choices."""
        before = batch.observation
        log_prob = self._log_prob(flat, before)
        prob = log_prob.exp()
        values = self.critics.call(self.critics.online, before).amin(dim=0)
        alpha = self.temperature.online.exp()
        loss = batch.mean((prob * (alpha * log_prob - values)).sum(dim=-1))
        expected = (prob * log_prob).sum(dim=-1)
        return loss, {"actor_loss": loss, "entropy": -batch.mean(expected), "log_prob": expected}

    def temperature_loss(
        self, flat: Tensor, batch: TransitionBatch, scalars: Numbers
    ) -> tuple[Tensor, Numbers]:
        """-log alpha (E log pi + target entropy): equation 11, with alpha in logarithms."""
        excess = batch.mean(scalars["log_prob"] + self.target_entropy(batch.observation))
        log_alpha = self.temperature.call(flat)[0]
        return -log_alpha * excess, {"temperature": log_alpha.exp()}

    def target_entropy(self, observation: Tensors) -> Tensor | float:
        """The target entropy in nats; [B] where masks make it that of the allowed actions."""
        algorithm = self._algorithm
        if algorithm.target_entropy is not None:
            return algorithm.target_entropy
        if ALLOWED not in observation:
            return algorithm.target_entropy_scale * sum(map(math.log, self.sizes))
        allowed = split_choices(observation[ALLOWED], self.sizes)
        dtype = self.temperature.online.dtype
        logs = [each.sum(dim=-1).to(dtype).log() for each in allowed]
        return algorithm.target_entropy_scale * torch.stack(logs).sum(dim=0)

    def _log_prob(self, flat: Tensor, observation: Tensors) -> Tensor:
        """Log-probabilities of every action, [B, M]."""
        logits = self.actor.call(flat, observation)
        for rule in self.output_rules:
            logits = rule(logits, observation)
        return log_probabilities(logits, self.sizes)

    def _choices(self, action: Tensor) -> Tensor:
        """Actions [B] or [B, D] as choices counted from 0, int64 [B, D]."""
        each = action.to(torch.int64).view(len(action), len(self.sizes))
        return each - self._first_actions


def _require_discrete_settings(
    params: SACAgentParameters, agent: OffPolicyAgent, sizes: Sequence[int]
) -> None:
    """Raise `ConfigurationError` where settings are for actions in a Box.

    Args:
        params: The settings.
        agent: Whose.
        sizes: Numbers of actions of each choice.
    """
    plain = CriticParameters()
    given = {
        "greedy_candidates": params.greedy_candidates > 0,
        "actor_terms": bool(params.actor_terms),
        "critic.action_layers": params.critic.action_layers != plain.action_layers,
        "critic.action_unit": params.critic.action_unit != plain.action_unit,
    }
    found = [name for name, is_given in given.items() if is_given]
    if found:
        raise ConfigurationError(
            f"agent '{agent.name}' acts in {agent.action_space}, and {found[0]} is for "
            "actions in a Box; leave it out"
        )
    target = params.algorithm.target_entropy
    most = sum(map(math.log, sizes))
    if target is not None and not 0 < target < most:
        raise ConfigurationError(
            f"agent '{agent.name}' acts in {agent.action_space}, where entropies lie between 0 and "
            f"{most:.3g} nats, got algorithm.target_entropy={target}; set it between these, or "
            "leave it out"
        )
