import pytest
import torch
from plain_actor_critics import PlainDDPG, learn_alike
from plain_learners import batches, build, frozen, moved

from coach_rl.agents.ddpg_agent import DDPGAlgorithmParameters
from coach_rl.architectures.optimizers import TargetSync

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
    learn_alike(agent, plain, batches(STEPS))
    assert moved(plain.actor, start) > 0.03


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
