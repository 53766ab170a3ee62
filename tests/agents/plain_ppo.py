"""PPO once more, as the papers write it down: slow, one row after the other, in double precision.

Schulman et al. 2017 (arXiv:1707.06347, "PPO") and Schulman et al. 2016 (arXiv:1506.02438, "GAE").
Distributions and Adam are torch's own; nothing comes from `coach_rl` but the settings, the first
weights and the seed of the shuffle.
"""

import copy
import math
from dataclasses import dataclass

import numpy as np
import torch
from gymnasium import spaces
from torch import Tensor, nn
from torch.distributions import Categorical, Independent, Normal, kl_divergence
from torch.nn.functional import linear


class PlainActorCritic:
    """Tanh layers, then a linear policy and a linear value; parameters by the names of the agent's.

    A policy of a Box has a mean that depends on the state and a deviation that does not (PPO,
    section 6.1).
    """

    def __init__(self, named: dict[str, Tensor], action_space: spaces.Space) -> None:
        self.named = {name: nn.Parameter(value.double()) for name, value in named.items()}
        self.action_space = action_space
        is_shared = not any(name.startswith("critic_torso") for name in named)
        self.critic_torso = "actor_torso" if is_shared else "critic_torso"

    def parameters(self) -> list[Tensor]:
        return list(self.named.values())

    def layer(self, name: str, values: Tensor) -> Tensor:
        return linear(values, self.named[f"{name}.weight"], self.named[f"{name}.bias"])

    def features(self, torso: str, observation: Tensor) -> Tensor:
        first = torch.tanh(self.layer(f"{torso}.middleware.0", observation))
        return torch.tanh(self.layer(f"{torso}.middleware.2", first))

    def value(self, observation: Tensor) -> Tensor:
        """[B]."""
        return self.layer("value_head", self.features(self.critic_torso, observation))[:, 0]

    def policy(self, observation: Tensor) -> "Policy":
        numbers = self.layer("policy_head", self.features("actor_torso", observation))
        match self.action_space:
            case spaces.Box():
                return Policy([Independent(Normal(numbers, self.named["log_std"].exp()), 1)])
            case spaces.Discrete():
                return Policy([Categorical(logits=numbers)])
        choices = numbers.split(self.action_space.nvec.tolist(), dim=1)
        return Policy([Categorical(logits=logits) for logits in choices])


@dataclass
class Policy:
    """Independent distributions: one, or one for each number of a MultiDiscrete action."""

    parts: list[torch.distributions.Distribution]

    def log_prob(self, action: Tensor) -> Tensor:
        if len(self.parts) == 1:
            return self.parts[0].log_prob(action)
        columns = zip(self.parts, action.T, strict=True)
        return sum(part.log_prob(chosen) for part, chosen in columns)

    def entropy(self) -> Tensor:
        return sum(part.entropy() for part in self.parts)


def kl(old: Policy, new: Policy) -> Tensor:
    """KL(old || new), [B]."""
    return sum(kl_divergence(a, b) for a, b in zip(old.parts, new.parts, strict=True))


@dataclass
class Step:
    """A decision and what came of it."""

    row: int
    observation: np.ndarray
    action: np.ndarray
    """As drawn, counted from the space's first action."""
    log_prob: Tensor
    """Under the policy that acted."""
    acted: PlainActorCritic
    """The networks that acted."""
    reward: float = 0.0
    next_observation: np.ndarray | None = None
    terminated: bool = False
    truncated: bool = False
    duration: int = 1


class PlainPPO:
    """Takes in the same decisions as a new `PPOAgent`, and learns from them as it should."""

    def __init__(self, agent) -> None:
        self.settings = agent.params.algorithm
        self.max_gradient_norm = agent.params.optimizer.max_gradient_norm
        named = agent.network.named(agent.network.online)
        self.model = PlainActorCritic(named, agent.action_space)
        self.first_action = getattr(agent.action_space, "start", 0)
        optimizer = agent.params.optimizer
        self.adam = torch.optim.Adam(
            self.model.parameters(), optimizer.learning_rate, optimizer.betas, optimizer.epsilon
        )
        self.shuffle = copy.deepcopy(agent.shuffle)
        self.kl_coefficient = self.settings.initial_kl_coefficient
        self.targets_so_far = []
        self.rollout: list[Step] = []
        self.frozen = copy.deepcopy(self.model)

    def decide(self, row: int, observation, action) -> Step:
        """A decision under today's policy."""
        counted = np.asarray(action) - self.first_action
        with torch.no_grad():
            policy = self.model.policy(doubles([observation]))
            log_prob = policy.log_prob(torch.from_numpy(counted[None]))[0]
        return Step(row, observation, counted, log_prob, self.frozen)

    def learn(self) -> dict[str, float]:
        """A round of updates on the rollout, which is empty afterwards; means of its metrics."""
        settings, count = self.settings, len(self.rollout)
        observation = doubles([step.observation for step in self.rollout])
        action = torch.from_numpy(np.array([step.action for step in self.rollout]))
        old_log_prob = torch.stack([step.log_prob for step in self.rollout])
        size = min(settings.minibatch, settings.rollout.count)
        said = []
        for epoch in range(settings.epochs):
            if epoch == 0 or settings.recompute_advantages:
                old_value, advantage, target = self.estimates()
            if epoch == 0:
                explained = 1 - float((target - old_value).var() / target.var())
            order = torch.from_numpy(self.shuffle.permutation(count))
            of_epoch = []
            for begin in range(0, count - size + 1, size):
                chosen = order[begin : begin + size]
                of_epoch.append(
                    self.gradient_step(
                        observation[chosen],
                        action[chosen],
                        old_log_prob[chosen],
                        [self.rollout[number] for number in chosen],
                        advantage[chosen],
                        old_value[chosen],
                        target[chosen],
                    )
                )
            said += of_epoch
            limit = settings.stop_at_kl
            if limit is not None and np.mean([each["approx_kl"] for each in of_epoch]) > limit:
                break
        metrics = {name: float(np.mean([each[name] for each in said])) for name in said[0]}
        metrics["explained_variance"] = explained
        if settings.objective == "kl":
            metrics["kl_coefficient"] = self.adapt(observation)
        self.rollout = []
        self.frozen = copy.deepcopy(self.model)
        return metrics

    def estimates(self) -> tuple[Tensor, Tensor, Tensor]:
        """Values in the critic's scale, advantages, and targets in the critic's scale, [M] each.

        GAE, equation 16: A_t is the sum over l of (gamma lambda)^l delta_{t+l}, with delta_t =
        r_t + gamma V(s_{t+1}) - V(s_t). V(s_{t+1}) is 0 behind a termination, and the sum ends
        with an episode and with the rollout.
        """
        settings, scale = self.settings, self.scale()
        with torch.no_grad():
            value = self.model.value(doubles([step.observation for step in self.rollout]))
            after = self.model.value(doubles([step.next_observation for step in self.rollout]))
        advantage = torch.zeros(len(self.rollout), dtype=torch.float64)
        for row in {step.row for step in self.rollout}:
            following = 0.0
            for number in reversed(range(len(self.rollout))):
                step = self.rollout[number]
                if step.row != row:
                    continue
                gamma = settings.discount
                if settings.discount_by_duration:
                    gamma = settings.discount**step.duration
                next_value = 0.0 if step.terminated else scale * float(after[number])
                delta = step.reward + gamma * next_value - scale * float(value[number])
                if step.terminated or step.truncated:
                    following = 0.0
                following = delta + gamma * settings.gae_lambda * following
                advantage[number] = following
        target = advantage + scale * value
        self.targets_so_far += target.tolist()
        return value, advantage, target / scale

    def scale(self) -> float:
        """What the critic's outputs are multiplied with to be returns (docs/algorithms/ppo.md)."""
        if not self.settings.scale_returns or not self.targets_so_far:
            return 1.0
        return math.sqrt(np.var(self.targets_so_far) + 1e-8)

    def gradient_step(
        self, observation, action, old_log_prob, steps, advantage, old_value, target
    ) -> dict[str, float]:
        """Ascend equation 9 of PPO, whose first term is equation 7 or 8."""
        settings = self.settings
        if settings.normalise_advantage:
            advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
        policy = self.model.policy(observation)
        log_ratio = policy.log_prob(action) - old_log_prob
        ratio = log_ratio.exp()
        if settings.objective == "clip":
            clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
            surrogate = torch.min(ratio * advantage, clipped * advantage).mean()
            divergence = (ratio - 1 - log_ratio).mean()
            outside = ((ratio < 1 - settings.clip) | (ratio > 1 + settings.clip)).double().mean()
        else:
            divergence = kl(acting_policy(steps), policy).mean()
            surrogate = (ratio * advantage).mean() - self.kl_coefficient * divergence
            outside = torch.zeros(())
        value = self.model.value(observation)
        error = (value - target) ** 2
        if settings.value_clip is not None:
            near = value.clamp(old_value - settings.value_clip, old_value + settings.value_clip)
            error = torch.max(error, (near - target) ** 2)
        value_loss, entropy = error.mean() / 2, policy.entropy().mean()
        objective = (
            surrogate
            - settings.value_coefficient * value_loss
            + settings.entropy_coefficient * entropy
        )
        self.adam.zero_grad()
        (-objective).backward()
        limit = self.max_gradient_norm or math.inf
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), limit)
        self.adam.step()
        return {
            "policy_loss": -surrogate.item(),
            "value_loss": value_loss.item(),
            "entropy": entropy.item(),
            "approx_kl": divergence.item(),
            "clip_fraction": outside.item(),
            "gradient_norm": norm.item(),
        }

    def adapt(self, observation: Tensor) -> float:
        """The next beta, by the divergence after the round (PPO, section 4)."""
        with torch.no_grad():
            divergence = kl(acting_policy(self.rollout), self.model.policy(observation)).mean()
        if divergence < self.settings.kl_target / 1.5:
            self.kl_coefficient /= 2
        elif divergence > self.settings.kl_target * 1.5:
            self.kl_coefficient *= 2
        return self.kl_coefficient


def acting_policy(steps: list[Step]) -> Policy:
    """The distributions that each of these decisions was drawn from."""
    with torch.no_grad():
        each = [step.acted.policy(doubles([step.observation])).parts for step in steps]
    joined = []
    for parts in zip(*each, strict=True):
        if isinstance(parts[0], Categorical):
            joined.append(Categorical(logits=torch.cat([part.logits for part in parts])))
        else:
            mean = torch.cat([part.base_dist.loc for part in parts])
            deviation = torch.cat([part.base_dist.scale for part in parts])
            joined.append(Independent(Normal(mean, deviation), 1))
    return Policy(joined)


def doubles(rows: list) -> Tensor:
    return torch.from_numpy(np.array(rows, np.float64))
