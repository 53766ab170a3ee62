"""Gradient steps of DQN against a slow version that goes sample by sample, atom by atom."""

from dataclasses import replace

import pytest
import torch
from gymnasium import spaces
from plain_dqn import PlainDQN

from coach_rl.architectures.optimizers import TargetSync
from tests.agents.small_dqns import HEADS, NETWORKS, batches, build, parameters

ACTIONS = spaces.Discrete(3, start=5)
SETTINGS = [
    {"double": False, "huber": 1.0, "target_sync": TargetSync(every=2)},
    {"double": True, "huber": None, "target_sync": TargetSync(rate=0.3)},
    {"double": True, "huber": 0.4, "clip_targets": (-1.0, 0.7)},
]


def assert_same_parameters(found, expected):
    for name, value in expected.named.items():
        torch.testing.assert_close(
            found[name].double(),
            value.detach(),
            rtol=0,
            atol=2e-5,
            msg=lambda text, name=name: f"{name}: {text}",
        )


@pytest.mark.drawn(one_of=4, each="head")
@pytest.mark.parametrize("number", range(len(SETTINGS)))
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("masked", [False, True])
def test_gradient_steps_equal_those_of_plain_dqn(head, network, number, masked):
    params = parameters(head, NETWORKS[network], SETTINGS[number])
    if number == 1:
        params = replace(params, optimizer=replace(params.optimizer, max_gradient_norm=0.3))
    agent = build(params, ACTIONS, masked=masked)
    wrapped = agent.learner.network
    plain = PlainDQN(params, agent)
    assert bool(plain.online.layers("state")) == params.network.dueling
    start = wrapped.online.clone()
    for batch in batches(4, ACTIONS, seed=number, masked=masked):
        expected = plain.step(batch)
        found = agent.learn_from_batch(batch)["td_error"]
        assert found.tolist() == pytest.approx(expected, rel=1e-4, abs=2e-5)
        assert_same_parameters(wrapped.named(wrapped.online), plain.online)
        assert_same_parameters(wrapped.named(wrapped.target), plain.target)
    assert (wrapped.online - start).abs().max() > 0.05
