import pytest
import torch
from plain_learners import (
    assert_same_network,
    batches,
    build,
    doubles,
    follow,
    frozen,
    moved,
    plain_actor,
    plain_adam,
    plain_critics,
    plain_error_loss,
    plain_step,
    values_of,
)

from coach_rl.agents.ddpg_agent import DDPGAlgorithmParameters
from coach_rl.architectures.gradient_step import TargetSync

STEPS = 8


class PlainDDPG:
    """DDPG (Lillicrap et al. 2016, algorithm 1) with plain modules, torch's Adam, in doubles."""

    def __init__(self, agent):
        self.settings, params = agent.params.algorithm, agent.params
        self.actor, (self.critic,) = (
            plain_actor(agent.learner.actor),
            plain_critics(agent.learner.critics),
        )
        self.actor_target, self.critic_target = frozen(self.actor), frozen(self.critic)
        self.params = params
        self.actor_adam = plain_adam(self.actor, params.actor_optimizer)
        self.critic_adam = plain_adam(self.critic, params.critic_optimizer)
        self.taken, self.said = 0, {}

    def step(self, batch):
        plain, share = doubles(batch)
        before, after = plain.observation["x"], plain.next_observation["x"]
        with torch.no_grad():
            next_share = torch.tanh(self.actor_target(after))
            next_value = values_of([self.critic_target], after, next_share)[0]
            target = plain.reward + plain.discount * next_value
            if self.settings.clip_targets is not None:
                target = target.clamp(*self.settings.clip_targets)
        values = values_of([self.critic], before, share)
        loss = plain_error_loss(values, target, plain.weight, self.settings.huber)
        self.said = {
            "critic_loss": loss.item(),
            "q_value": values.mean().item(),
            "q_lowest": values.min().item(),
            "q_highest": values.max().item(),
            "critic_gradient_norm": plain_step(
                self.critic_adam, loss, self.critic, self.params.critic_optimizer
            ),
        }
        errors = (values - target)[0].detach()
        share = torch.tanh(self.actor(before))
        loss = -values_of([self.critic], before, share).mean()
        loss = loss + self.settings.action_penalty * (share**2).mean()
        self.said["actor_loss"] = loss.item()
        self.said["actor_gradient_norm"] = plain_step(
            self.actor_adam, loss, self.actor, self.params.actor_optimizer
        )
        self.taken += 1
        if self.taken % self.settings.target_sync.every == 0:
            rate = self.settings.target_sync.rate
            follow(self.actor_target, self.actor, rate)
            follow(self.critic_target, self.critic, rate)
        return errors


@pytest.mark.parametrize(
    ("algorithm", "adam"),
    [
        ({}, {}),
        ({"huber": 0.7}, {}),
        ({"clip_targets": (-1.0, 1.5)}, {}),
        ({"action_penalty": 0.8}, {}),
        ({}, {"l2": 0.3}),
        ({}, {"max_gradient_norm": 0.05, "betas": (0.7, 0.9)}),
        ({"target_sync": TargetSync(rate=0.3)}, {}),
        ({"target_sync": TargetSync(every=3)}, {}),
        ({"target_sync": TargetSync(rate=0.4, every=2), "huber": 1.0, "action_penalty": 0.1}, {}),
    ],
    ids=lambda value: ", ".join(value) or "plain",
)
def test_it_learns_as_a_plain_torch_version_does(algorithm, adam):
    agent = build("ddpg", algorithm=algorithm, adam={"epsilon": 1e-4, **adam})
    plain = PlainDDPG(agent)
    start, said = frozen(plain.actor), []
    for batch in batches(STEPS):
        expected = plain.step(batch)
        outputs = agent.learn_from_batch(batch)
        torch.testing.assert_close(outputs["td_error"].double(), expected, rtol=1e-3, atol=1e-4)
        said.append(plain.said)
    assert moved(plain.actor, start) > 0.03
    assert_same_network(plain_actor(agent.learner.actor), plain.actor)
    assert_same_network(plain_critics(agent.learner.critics)[0], plain.critic)
    assert_same_network(
        plain_actor(agent.learner.actor, agent.learner.actor.target), plain.actor_target
    )
    assert_same_network(
        plain_critics(agent.learner.critics, agent.learner.critics.target)[0], plain.critic_target
    )
    metrics = agent.learner.engine.drain_metrics()
    assert metrics.keys() == said[0].keys()
    for name, value in metrics.items():
        mean = sum(each[name] for each in said) / STEPS
        assert value == pytest.approx(mean, rel=1e-3, abs=1e-4), name


@pytest.mark.parametrize("wrong", ["weight", "discount", "huber", "penalty"])
def test_the_plain_version_can_tell_a_difference(wrong):
    """Each of these is at work in the comparison above: without it, it would fail."""
    algorithm = {"huber": 0.7, "action_penalty": 0.8}
    agent = build("ddpg", algorithm=algorithm, adam={"epsilon": 1e-4})
    plain = PlainDDPG(agent)
    if wrong in ("huber", "penalty"):
        other = {"huber": {"huber": None}, "penalty": {"action_penalty": 0.0}}[wrong]
        plain.settings = DDPGAlgorithmParameters(**{**algorithm, **other})
    for batch in batches(STEPS):
        agent.learn_from_batch(batch)
        if wrong in batch._fields:
            batch = batch._replace(**{wrong: torch.full((16,), 0.5)})
        plain.step(batch)
    both = torch.nn.ModuleList(
        [plain_actor(agent.learner.actor), plain_critics(agent.learner.critics)[0]]
    )
    with pytest.raises(AssertionError):
        assert_same_network(both, torch.nn.ModuleList([plain.actor, plain.critic]))


def test_the_actor_climbs_the_critic_as_it_stands_after_its_step():
    """With a critic that has learned to prefer large actions only just now."""
    agent = build("ddpg", rate=0.5)
    plain = PlainDDPG(agent)
    (batch,) = batches(1)
    stale = frozen(plain.critic)
    plain.step(batch)
    agent.learn_from_batch(batch)
    assert moved(plain.critic, stale) > 0.3
    assert_same_network(plain_actor(agent.learner.actor), plain.actor)


def test_a_step_moves_no_network_that_it_should_not():
    agent = build("ddpg", algorithm={"target_sync": TargetSync(every=100)})
    targets = agent.learner.actor.target.clone(), agent.learner.critics.target.clone()
    for batch in batches(3):
        agent.learn_from_batch(batch)
    assert torch.equal(agent.learner.actor.target, targets[0])
    assert torch.equal(agent.learner.critics.target, targets[1])
