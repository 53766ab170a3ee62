import pytest
from plain_actor_critics import PlainDDPG, learn_alike
from plain_learners import batches, build, frozen, moved

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
