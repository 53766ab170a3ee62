"""Gradient steps of DQN against a slow version that goes sample by sample, atom by atom."""

import pytest
import torch
from decisions import context
from gymnasium import spaces
from plain_dqn import PlainDQN

from coach_rl.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
from coach_rl.architectures.gradient_step import AdamParameters, TargetSync
from coach_rl.architectures.q_network import MeanHead, QNetworkParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.core.records import ALLOWED
from coach_rl.extensions.distributional.heads import CategoricalHead, QuantileHead
from coach_rl.memories import ReplayMemoryParameters, TransitionBatch

SEEN = spaces.Dict({"x": spaces.Box(-9, 9, (3,))})
ACTIONS = spaces.Discrete(3, start=5)
STEPS, BATCH = 4, 12
HEADS = {
    "mean": MeanHead(),
    "quantiles": QuantileHead(count=5),
    "categorical": CategoricalHead(atoms=11, low=-1.5, high=2.5),
}
NETWORKS = {
    "plain": {},
    "streams": {"streams": (5,)},
    "dueling": {"dueling": True},
    "dueling streams": {"dueling": True, "streams": (5,)},
}
SETTINGS = [
    {"double": False, "huber": 1.0, "target_sync": TargetSync(every=2)},
    {"double": True, "huber": None, "target_sync": TargetSync(rate=0.3)},
    {"double": True, "huber": 0.4, "clip_targets": (-1.0, 0.7)},
]


def parameters(head, network, algorithm, *, max_gradient_norm):
    return DQNAgentParameters(
        algorithm=DQNAlgorithmParameters(**algorithm),
        network=QNetworkParameters(
            torso=TorsoParameters(middleware=(7, 6), activation="relu"), head=head, **network
        ),
        memory=ReplayMemoryParameters(capacity=50_000),
        optimizer=AdamParameters(
            learning_rate=0.02, epsilon=1e-4, max_gradient_norm=max_gradient_norm
        ),
        update_mode="eager",
    )


def build(params, *, masked=False):
    shown = {"action_mask": spaces.MultiBinary(3)} if masked else {}
    return params.build(context({**SEEN.spaces, **shown}, ACTIONS, num_envs=1))


def batches(seed, *, masked=False):
    """As a memory with n-step returns and priorities gives them: some terminated, all weighted.

    Rewards are multiples of a fifth, so that many a moved atom of C51 falls on another or beyond
    the ends. A mask allows one action or two; that of the observation itself is of no account.
    """
    rng = torch.Generator().manual_seed(seed)
    for _ in range(STEPS):
        mask = torch.nn.functional.one_hot(torch.randint(3, (BATCH,), generator=rng), 3).bool()
        mask ^= torch.randint(2, (BATCH, 1), generator=rng).bool()
        masks = {ALLOWED: mask} if masked else {}
        kind = torch.randint(3, (BATCH,), generator=rng)
        yield TransitionBatch(
            observation={"x": torch.randn(BATCH, 3, generator=rng)} | masks,
            action=5 + torch.randint(3, (BATCH,), generator=rng),
            reward=torch.randint(-15, 16, (BATCH,), generator=rng) / 5,
            next_observation={"x": torch.randn(BATCH, 3, generator=rng)} | masks,
            discount=torch.tensor([0.9, 0.0, 0.9**3])[kind],
            weight=0.2 + torch.rand(BATCH, generator=rng),
            position=torch.arange(BATCH),
        )


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
    params = parameters(
        HEADS[head],
        NETWORKS[network],
        SETTINGS[number],
        max_gradient_norm=0.3 if number == 1 else None,
    )
    agent = build(params, masked=masked)
    plain, start = PlainDQN(params, agent), agent.learner.network.online.clone()
    for batch in batches(seed=number, masked=masked):
        expected = plain.step(batch)
        found = agent.learn_from_batch(batch)["td_error"]
        assert found.tolist() == pytest.approx(expected, rel=1e-4, abs=2e-5)
        assert_same_parameters(
            agent.learner.network.named(agent.learner.network.online), plain.online
        )
        assert_same_parameters(
            agent.learner.network.named(agent.learner.network.target), plain.target
        )
    assert (agent.learner.network.online - start).abs().max() > 0.05
