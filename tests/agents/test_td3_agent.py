import pytest
from plain_actor_critics import PlainTD3, learn_alike
from plain_learners import batches, build, frozen, moved

from coach_rl.architectures.optimizers import TargetSync

STEPS = 9


@pytest.mark.parametrize(
    ("algorithm", "adam"),
    [
        ({}, {}),
        ({"huber": 0.7}, {}),
        ({"policy_delay": 1}, {}),
        ({"policy_delay": 3, "target_sync": TargetSync(rate=0.3)}, {}),
        ({"target_sync": TargetSync(every=2)}, {}),
        ({"target_noise": 1.5, "target_noise_clip": 0.25}, {}),
        ({"target_noise": 1.5, "target_noise_clip": 1.2}, {}),
        ({"target_noise": 0.0}, {}),
        ({"target_noise": 0.4, "target_noise_clip": 0.5, "target_noise_unit": "raw"}, {}),
        ({"clip_targets": (-1.0, 1.5)}, {}),
        ({}, {"l2": 0.3}),
        ({}, {"max_gradient_norm": 0.05}),
    ],
    ids=lambda value: ", ".join(value) or "plain",
)
def test_it_learns_as_a_plain_torch_version_does(algorithm, adam):
    agent = build("td3", algorithm=algorithm, adam={"epsilon": 1e-4, **adam})
    plain = PlainTD3(agent)
    start = frozen(plain.actor)
    learn_alike(agent, plain, batches(STEPS))
    assert moved(plain.actor, start) > 0.02
