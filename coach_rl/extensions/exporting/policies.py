"""Networks of agents and the choices by their outputs, as torch modules that can be traced."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn

from coach_rl.agents.off_policy_agent import OffPolicyAgent
from coach_rl.agents.ppo_agent import PPOAgent
from coach_rl.agents.sac_agent import CandidatePolicy
from coach_rl.architectures.continuous_control import (
    Actor,
    Critics,
    DeterministicActor,
    SquashedGaussianActor,
)
from coach_rl.architectures.hidden_states import stateful_layers
from coach_rl.architectures.q_network import QNetwork
from coach_rl.core.discrete_actions import choice_sizes, first_action
from coach_rl.core.records import HIDDEN_STATE
from coach_rl.exploration_policies.sampling import Sampler
from coach_rl.functional.temporal_difference import dueling_values

Tensors = dict[str, Tensor]


class Policy(nn.Module, ABC):
    """A network and the choice by its outputs.

    Args:
        torso: The policy's, whose recurrent layer is the only one that acting needs, but for
            `CandidatesPolicy`.
        agent: Whose.
    """

    noise_kind = "normal"
    noise_size = 0
    last: nn.Module

    def __init__(self, torso: Any, agent: PPOAgent | OffPolicyAgent) -> None:
        super().__init__()
        self.torso = torso
        self.space = agent.action_space
        layers = stateful_layers([torso])
        self.hidden_size = sum(layer.state_size for layer in layers)
        self._begin = min((layer.begin for layer in layers), default=0)
        self.reset = next((layer.reset for layer in layers), None)
        """The start at which its hidden state becomes 0; None where it has none."""

    def outputs(self, filtered: Tensors) -> tuple[Tensor, Tensor | None]:
        """Outputs [R, P] and the hidden states [R, H] after them, if any."""
        if HIDDEN_STATE in filtered:
            padded = nn.functional.pad(filtered[HIDDEN_STATE], (self._begin, 0))
            filtered = {**filtered, HIDDEN_STATE: padded}
        features, state = self.torso.advance(filtered)
        return self.head(features), state

    def head(self, features: Tensor) -> Tensor:
        """Outputs [R, P] of features."""
        outputs: Tensor = self.last(features)
        return outputs

    @abstractmethod
    def choice(self, outputs: Tensor, noise: Tensor | None, filtered: Tensors, /) -> Tensor:
        """Actions [R, ...] in the agent's space."""


def policy_of(agent: PPOAgent | OffPolicyAgent) -> Policy | str:
    """The policy of an agent; why there is none."""
    if isinstance(agent, PPOAgent):
        model = agent.model
        return DistributionPolicy(
            model.actor_torso, model.policy_head, model.log_std, agent.sampler, agent
        )
    acting = agent.learner.acting
    networks = agent.learner.networks
    names = [name for name in ("q", "actor", "policy") if name in networks]
    network = networks[names[0]].module if names else None
    known = all(
        type(each).__module__.startswith("coach_rl.") for each in (acting, acting.exploration)
    )
    if not known or type(network) not in KINDS:
        return f"no graph for its {type(network).__name__} is known"
    if isinstance(acting, CandidatePolicy):
        return CandidatesPolicy(agent, acting)
    return KINDS[type(network)](network, agent)


class DistributionPolicy(Policy):
    """The mean or the most likely actions of a distribution, as PPO's.

    Args:
        torso: The policy's.
        last: From features to means and logits.
        log_std: Of Gaussian policies, [A].
        sampler: Draws the agent's actions.
        agent: Whose.
    """

    def __init__(
        self,
        torso: Any,
        last: nn.Module,
        log_std: Tensor | None,
        sampler: Sampler,
        agent: PPOAgent | OffPolicyAgent,
    ) -> None:
        super().__init__(torso, agent)
        self.last = last
        self.log_std = log_std
        self.noise_kind, self.noise_size = sampler.noise_kind, sampler.noise_size
        self._sizes = choice_sizes(self.space)
        self._is_single = isinstance(self.space, spaces.Discrete)
        self._first = torch.from_numpy(np.asarray(first_action(self.space)))

    def choice(self, outputs: Tensor, noise: Tensor | None, _filtered: Tensors, /) -> Tensor:
        """The mean, or the largest logits; samples with noise."""
        sizes = self._sizes
        if not sizes:
            assert self.log_std is not None
            return outputs if noise is None else outputs + self.log_std.exp() * noise
        chosen = chosen_of(outputs, sizes, noise)
        if self.log_std is None:
            return (chosen[:, 0] if self._is_single else chosen) + self._first
        mean = outputs[:, sum(sizes) :]
        if noise is not None:
            pairs = (mean.shape[1] + 1) // 2
            uniform = noise[:, len(sizes) :]
            radius = torch.sqrt(-2 * torch.log1p(-uniform[:, :pairs]))
            angle = 2 * np.pi * uniform[:, pairs:]
            normal = torch.cat([radius * torch.cos(angle), radius * torch.sin(angle)], dim=1)
            mean = mean + self.log_std.exp() * normal[:, : mean.shape[1]]
        return torch.cat([chosen.to(torch.float32), mean], dim=1)


def chosen_of(logits: Tensor, sizes: tuple[int, ...], noise: Tensor | None) -> Tensor:
    """The largest logit of each choice, or a draw by uniform noise [R, D], int64 [R, D]."""
    actions = []
    ends = np.cumsum(sizes).tolist()
    for number, (begin, end) in enumerate(pairwise((0, *ends))):
        own = logits[:, begin:end]
        if noise is None:
            actions.append(own.argmax(dim=1))
            continue
        summed = own.softmax(dim=1).cumsum(dim=1)
        below = (summed <= noise[:, number : number + 1]).sum(dim=1)
        last = (summed < summed[:, -1:]).sum(dim=1)
        actions.append(torch.minimum(below, last))
    return torch.stack(actions, dim=1)


class ChoicePolicy(Policy):
    """The largest outputs: values of DQN, logits of SAC."""

    def __init__(self, network: QNetwork | Actor, agent: OffPolicyAgent) -> None:
        super().__init__(network.torso, agent)
        self.network = network
        self._sizes = choice_sizes(agent.action_space)
        self._first = torch.from_numpy(np.asarray(first_action(agent.action_space)))
        if isinstance(network, Actor):
            self.noise_kind, self.noise_size = "uniform", len(self._sizes)

    def head(self, features: Tensor) -> Tensor:
        """Expected returns, or logits, of all choices side by side [R, M]."""
        network = self.network
        if isinstance(network, Actor):
            logits: Tensor = network.head(features)
            return logits
        each = network.actions(features).reshape(-1, sum(self._sizes), network.returns.size)
        if network.state is not None:
            value = network.state(features).unsqueeze(1)
            parts = torch.split_with_sizes(each, list(self._sizes), dim=1)
            each = torch.cat([dueling_values(value, part) for part in parts], dim=1)
        return network.returns.mean(each)

    def choice(self, outputs: Tensor, noise: Tensor | None, _filtered: Tensors, /) -> Tensor:
        """The actions of the largest outputs; samples of logits with noise."""
        chosen = chosen_of(outputs, self._sizes, noise)
        return (chosen if self.space.shape else chosen[:, 0]) + self._first


class DeterministicPolicy(Policy):
    """The actor's of DDPG and TD3."""

    def __init__(self, network: DeterministicActor, agent: OffPolicyAgent) -> None:
        super().__init__(network.torso, agent)
        self.last = network.head

    def choice(self, outputs: Tensor, _noise: Tensor | None, _filtered: Tensors, /) -> Tensor:
        """The actor's action."""
        return outputs


class SquashedPolicy(Policy):
    """SAC's: the squashed mean."""

    def __init__(self, network: SquashedGaussianActor, agent: OffPolicyAgent) -> None:
        super().__init__(network.torso, agent)
        self.last = network.head
        self.to_box = network.to_box
        self.bounds = network.log_std_bounds
        self.noise_size = len(network.to_box.low)

    def choice(self, outputs: Tensor, noise: Tensor | None, _filtered: Tensors, /) -> Tensor:
        """The squashed mean, or a squashed sample."""
        mean, log_std = outputs.chunk(2, dim=1)
        if noise is not None:
            mean = mean + log_std.clamp(*self.bounds).exp() * noise
        action: Tensor = self.to_box(torch.tanh(mean))
        return action


class CandidatesPolicy(SquashedPolicy):
    """SAC's candidate of the highest value, as `CandidatePolicy` chooses it."""

    def __init__(self, agent: OffPolicyAgent, acting: CandidatePolicy) -> None:
        networks = agent.learner.networks
        actor = networks["actor"].module
        critics = networks["critics"].module
        assert isinstance(actor, SquashedGaussianActor)
        assert isinstance(critics, Critics)
        super().__init__(actor, agent)
        self.critics = critics
        self.normal = acting.normal
        self.uniform = acting.uniform
        layers = stateful_layers([actor, critics])
        self.hidden_size = sum(layer.state_size for layer in layers)
        self._begin = 0
        self.reset = next((layer.reset for layer in layers), None)

    def outputs(self, filtered: Tensors) -> tuple[Tensor, Tensor | None]:
        """Outputs [R, P] and the hidden states after them, the actor's and the critics'."""
        outputs, state = super().outputs(filtered)
        embedder = self.critics.embedder
        states = [state, None if embedder is None else embedder.advance(filtered)[1]]
        known = [each for each in states if each is not None]
        return outputs, torch.cat(known, dim=1) if known else None

    def choice(self, outputs: Tensor, noise: Tensor | None, filtered: Tensors, /) -> Tensor:
        """The best of the squashed mean and the candidates; a sample with noise."""
        if noise is not None:
            return super().choice(outputs, noise, filtered)
        mean, log_std = outputs.unsqueeze(1).chunk(2, dim=2)
        drawn = torch.tanh(mean + log_std.clamp(*self.bounds).exp() * self.normal)
        anywhere = self.uniform + torch.zeros_like(mean)
        choices = self.to_box(torch.cat([torch.tanh(mean), drawn, anywhere], dim=1))
        count = 1 + 2 * len(self.normal)
        seen = {key: array.repeat_interleave(count, 0) for key, array in filtered.items()}
        values = self.critics(seen, choices.flatten(0, 1)).amin(dim=0).reshape(-1, count)
        best = values.argmax(dim=1)[:, None, None].expand(-1, 1, choices.shape[2])
        chosen: Tensor = choices.gather(1, best).squeeze(1)
        return chosen


KINDS: dict[type, Callable[[Any, OffPolicyAgent], Policy]] = {
    QNetwork: ChoicePolicy,
    Actor: ChoicePolicy,
    DeterministicActor: DeterministicPolicy,
    SquashedGaussianActor: SquashedPolicy,
}
"""Policies of off-policy agents by the class of their network; offers add theirs."""
