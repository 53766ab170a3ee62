"""Implicit Q-learning with plain modules and torch's Adam in double precision."""

import copy

import torch
from plain_learners import (
    assert_same_network,
    follow,
    plain_actor,
    plain_adam,
    plain_critics,
    plain_step,
    values_of,
)
from torch import nn

import coach_rl as rl
from coach_rl.architectures.gradient_step import mapped

ADAM = rl.AdamParameters(learning_rate=0.01, epsilon=1e-4)
"""Epsilon is large beside rounding, so that single and double precision stay together."""


class PlainPolicy:
    """A Gaussian whose mean is squashed, and which clones actions of [-1, 1] by advantage."""

    def __init__(self, policy):
        self.mean = plain_actor(policy)
        self.log_std = nn.Parameter(policy.named(policy.online)["log_std"].double().clone())
        self.both = nn.ParameterList([*self.mean.parameters(), self.log_std])
        self.adam = plain_adam(self.both, ADAM)

    def log_prob(self, seen, action):
        """Of actions [B, A], [B]."""
        std = self.log_std.clamp(-5, 2).exp()
        normal = torch.distributions.Normal(torch.tanh(self.mean(seen)), std)
        return normal.log_prob(action).sum(dim=1)

    def cloning_loss(self, plain, seen, advantage, settings):
        """Advantages are exponents of the weights of actions."""
        weight = (settings.temperature * advantage.detach()).exp()
        weight = weight.clamp(max=settings.largest_weight)
        return -(plain.weight * weight * self.log_prob(seen, plain.action)).mean()

    def step(self, loss):
        plain_step(self.adam, loss, self.both, ADAM)

    def assert_same(self, policy):
        """The agent's policy is the plain one."""
        assert_same_network(plain_actor(policy), self.mean)
        log_std = policy.named(policy.online)["log_std"].double()
        torch.testing.assert_close(log_std, self.log_std.detach(), rtol=1e-3, atol=2e-5)


class PlainIQL:
    """Kostrikov et al. 2022, equations 5 to 7, in the order of the authors' code."""

    def __init__(self, agent):
        self.settings = agent.params.algorithm
        self.policy = PlainPolicy(agent.learner.policy)
        self.value = plain_actor(agent.learner.value)
        self.critics = plain_critics(agent.learner.critics)
        self.critics_target = copy.deepcopy(self.critics)
        self.value_adam = plain_adam(self.value, ADAM)
        self.critics_adam = plain_adam(self.critics, ADAM)

    def seen(self, observation):
        """What the networks see, [B, O]."""
        return observation["x"]

    def advantage(self, critics, seen, action):
        """Of actions under the lower critic, [B]."""
        return values_of(critics, seen, action).amin(dim=0).detach() - self.value(seen)[:, 0]

    def policy_loss(self, plain):
        before = self.seen(plain.observation)
        advantage = self.advantage(self.critics_target, before, plain.action)
        return self.policy.cloning_loss(plain, before, advantage, self.settings)

    def step(self, batch):
        plain = mapped(torch.Tensor.double, batch)  # the policy acts in [-1, 1]
        before = self.seen(plain.observation)
        settings = self.settings
        error = self.advantage(self.critics_target, before, plain.action)
        side = (settings.expectile - (error < 0).double()).abs()
        plain_step(self.value_adam, (plain.weight * side * error**2).mean(), self.value, ADAM)
        self.policy.step(self.policy_loss(plain))
        following = self.value(self.seen(plain.next_observation))[:, 0].detach()
        target = plain.reward + plain.discount * following
        error = values_of(self.critics, before, plain.action) - target
        loss = (plain.weight * 0.5 * error**2).mean(dim=1).sum()
        plain_step(self.critics_adam, loss, self.critics, ADAM)
        follow(self.critics_target, self.critics, settings.target_sync.rate)

    def assert_same(self, agent):
        """The agent's networks are the plain ones."""
        learner = agent.learner
        self.policy.assert_same(learner.policy)
        assert_same_network(plain_actor(learner.value), self.value)
        assert_same_network(plain_critics(learner.critics), self.critics)
