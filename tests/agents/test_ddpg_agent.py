import pytest
import torch
from plain_actor_critics import PlainDDPG, learn_alike
from plain_learners import assert_same_network, batches, build, frozen, moved, plain_actor

from coach_rl.agents.ddpg_agent import DDPGAlgorithmParameters
from coach_rl.architectures.gradient_step import TargetSync

STEPS = 8


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
    start = frozen(plain.actor)
    expected = []
    for batch in batches(STEPS):
        learn_alike(agent, plain, [batch])
        expected.append(dict(plain.metrics))
    assert moved(plain.actor, start) > 0.03
    metrics = agent.learner.engine.drain_metrics()
    assert metrics.keys() == expected[0].keys()
    for name, value in metrics.items():
        mean = sum(each[name] for each in expected) / STEPS
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
    with pytest.raises(AssertionError):
        plain.assert_same(agent)


def test_the_actor_climbs_the_critic_as_it_stands_after_its_step():
    """With a critic that has learned to prefer large actions only just now."""
    agent = build("ddpg", rate=0.5)
    plain = PlainDDPG(agent)
    (batch,) = batches(1)
    stale = frozen(plain.critics)
    plain.step(batch)
    agent.learn_from_batch(batch)
    assert moved(plain.critics, stale) > 0.3
    assert_same_network(plain_actor(agent.learner.actor), plain.actor)


def test_a_step_moves_no_network_that_it_should_not():
    agent = build("ddpg", algorithm={"target_sync": TargetSync(every=100)})
    targets = agent.learner.actor.target.clone(), agent.learner.critics.target.clone()
    for batch in batches(3):
        agent.learn_from_batch(batch)
    assert torch.equal(agent.learner.actor.target, targets[0])
    assert torch.equal(agent.learner.critics.target, targets[1])
