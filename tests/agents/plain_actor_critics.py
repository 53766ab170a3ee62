"""DDPG and TD3 with plain modules and torch's Adam in double precision; others vary their parts."""

import pytest
import torch
from plain_learners import (
    HALF,
    assert_same_network,
    doubles,
    follow,
    frozen,
    plain_actor,
    plain_adam,
    plain_critics,
    plain_error_loss,
    plain_step,
    values_of,
)


class PlainDDPG:
    """DDPG (Lillicrap et al. 2016, algorithm 1)."""

    delay = 1
    """Steps of the critics for each one of the actor and the targets."""

    def __init__(self, agent):
        self.params = agent.params
        self.settings = agent.params.algorithm
        self.actor = plain_actor(agent.learner.actor)
        self.critics = plain_critics(agent.learner.critics)
        self.actor_target = frozen(self.actor)
        self.critics_target = frozen(self.critics)
        self.actor_adam = plain_adam(self.actor, self.params.actor_optimizer)
        self.critics_adam = plain_adam(self.critics, self.params.critic_optimizer)
        self.taken = 0
        self.metrics = {}
        """Of the last step."""

    def next_share(self, after):
        """The target actor's actions as shares of the box, [B, A]."""
        return torch.tanh(self.actor_target(after))

    def next_value(self, plain):
        """The lowest target critic's values of the next observations, [B]."""
        after = plain.next_observation["x"]
        return values_of(self.critics_target, after, self.next_share(after)).amin(dim=0)

    def clipped(self, target):
        bounds = self.settings.clip_targets
        return target if bounds is None else target.clamp(*bounds)

    def critic_loss(self, batch):
        """The loss, and the errors of each critic, [K, B]."""
        plain, share = doubles(batch)
        with torch.no_grad():
            target = self.clipped(plain.reward + plain.discount * self.next_value(plain))
        values = values_of(self.critics, plain.observation["x"], share)
        self.metrics |= {
            "q_value": values.mean().item(),
            "q_lowest": values.min().item(),
            "q_highest": values.max().item(),
        }
        loss = plain_error_loss(values, target, plain.weight, self.settings.huber)
        return loss, (values - target).detach()

    def actor_loss(self, batch):
        before = doubles(batch)[0].observation["x"]
        share = torch.tanh(self.actor(before))
        loss = -values_of(self.critics[:1], before, share).mean()
        return loss + self.settings.action_penalty * (share**2).mean()

    def step(self, batch):
        """Learn from a batch; returns the temporal-difference errors, [B]."""
        self.metrics = {}
        loss, errors = self.critic_loss(batch)
        self.metrics["critic_loss"] = loss.item()
        self.metrics["critic_gradient_norm"] = plain_step(
            self.critics_adam, loss, self.critics, self.params.critic_optimizer
        )
        self.taken += 1
        if self.taken % self.delay == 0:
            self.step_actor(batch)
        return self.td_error(errors)

    def step_actor(self, batch):
        loss = self.actor_loss(batch)
        self.metrics["actor_loss"] = loss.item()
        self.metrics["actor_gradient_norm"] = plain_step(
            self.actor_adam, loss, self.actor, self.params.actor_optimizer
        )
        sync = self.settings.target_sync
        if self.taken // self.delay % sync.every == 0:
            follow(self.actor_target, self.actor, sync.rate)
            follow(self.critics_target, self.critics, sync.rate)

    def td_error(self, errors):
        return errors[0]

    def assert_same(self, agent):
        """The agent's networks and targets are the plain ones."""
        actor = agent.learner.actor
        critics = agent.learner.critics
        assert_same_network(plain_actor(actor), self.actor)
        assert_same_network(plain_critics(critics), self.critics)
        assert_same_network(plain_actor(actor, actor.target), self.actor_target)
        assert_same_network(plain_critics(critics, critics.target), self.critics_target)


class PlainTD3(PlainDDPG):
    """TD3 (Fujimoto et al. 2018, algorithm 1)."""

    def __init__(self, agent):
        super().__init__(agent)
        assert len(self.critics) == 2
        self.delay = self.settings.policy_delay
        self.noise = torch.Generator()
        self.noise.set_state(agent.noise_rng.get_state())

    def next_share(self, after):
        share = super().next_share(after)
        noise = torch.randn(share.shape, generator=self.noise).double() * self.settings.target_noise
        limit = self.settings.target_noise_clip
        noise = noise.clamp(-limit, limit)
        if self.settings.target_noise_unit == "raw":
            noise = noise / HALF  # as shares of the box
        return (share + noise).clamp(-1, 1)

    def actor_loss(self, batch):
        before = doubles(batch)[0].observation["x"]
        return -values_of(self.critics[:1], before, torch.tanh(self.actor(before))).mean()

    def td_error(self, errors):
        return errors.abs().mean(dim=0)


def learn_alike(agent, plain, made):
    """Let both learn from batches: errors and networks are the same after each, metrics at last.

    Those of the actor are means over its own steps.
    """
    steps = []
    for batch in made:
        expected = plain.step(batch)
        outputs = agent.learn_from_batch(batch)
        torch.testing.assert_close(outputs["td_error"].double(), expected, rtol=1e-3, atol=1e-4)
        plain.assert_same(agent)
        steps.append(plain.metrics)
    found = agent.learner.engine.drain_metrics()
    assert found.keys() == set().union(*steps)
    for name, value in found.items():
        own = [each[name] for each in steps if name in each]
        assert value == pytest.approx(sum(own) / len(own), rel=1e-3, abs=1e-4), name
