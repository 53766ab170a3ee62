"""TD3+BC, IQL and discrete CQL against plain torch programs in double precision."""

import copy

import numpy as np
import pytest
import torch
from decisions import context
from gymnasium import spaces
from plain_actor_critics import PlainTD3, learn_alike
from plain_learners import (
    BOX,
    HALF,
    MIDDLE,
    SEEN,
    SMALL,
    assert_same_network,
    batches,
    doubles,
    plain_actor,
    plain_adam,
    plain_step,
    values_of,
)
from torch import nn

import coach_rl as rl
from coach_rl.architectures.gradient_step import mapped
from coach_rl.core.errors import SpaceError
from tests.extensions.offline.plain_iql import ADAM, PlainIQL

COMMON = {
    "learning": rl.LearningParameters(batch=16, learning_starts=1),
    "memory": rl.ReplayMemoryParameters(capacity=200),
    "update_mode": "eager",
}


class PlainTD3BC(PlainTD3):
    """Fujimoto & Gu 2021, equations 3 to 5, on TD3."""

    def actor_loss(self, batch):
        plain, share = doubles(batch)
        before = plain.observation["x"]
        chosen = torch.tanh(self.actor(before))
        values = values_of(self.critics[:1], before, chosen)[0]
        scale = self.settings.alpha / values.abs().mean().detach()
        cloning = nn.functional.mse_loss(chosen, share)
        self.metrics["cloning_loss"] = cloning.item()
        return -scale * values.mean() + cloning


@pytest.mark.parametrize("algorithm", [{}, {"alpha": 0.3}, {"policy_delay": 1}], ids=str)
def test_td3_bc_equals_a_plain_program(algorithm):
    agent = rl.TD3BCAgentParameters(
        algorithm=rl.TD3BCAlgorithmParameters(**algorithm),
        actor=rl.ActorParameters(torso=SMALL),
        critic=rl.CriticParameters(torso=SMALL),
        actor_optimizer=ADAM,
        critic_optimizer=ADAM,
        **COMMON,
    ).build(context(SEEN, BOX))
    learn_alike(agent, PlainTD3BC(agent), batches(8))


@pytest.mark.parametrize(
    "algorithm",
    [{}, {"expectile": 0.9, "temperature": 10.0}, {"temperature": 2.0, "largest_weight": 1.5}],
    ids=str,
)
def test_iql_equals_a_plain_program(algorithm):
    agent = rl.IQLAgentParameters(
        algorithm=rl.IQLAlgorithmParameters(**algorithm),
        policy=rl.PolicyParameters(torso=SMALL),
        critic=rl.CriticParameters(torso=SMALL),
        value=SMALL,
        policy_optimizer=ADAM,
        critic_optimizer=ADAM,
        value_optimizer=ADAM,
        **COMMON,
    ).build(context(SEEN, BOX))
    plain = PlainIQL(agent)
    for batch in batches(8, box=spaces.Box(-1, 1, (2,))):
        plain.step(batch)
        agent.learn_from_batch(batch)
    plain.assert_same(agent)


def test_iql_policy_acts_within_the_bounds_of_a_box():
    agent = rl.IQLAgentParameters(**COMMON).build(context(SEEN, BOX))
    assert agent.action_space == spaces.Box(-1, 1, (2,))
    middle, edge = agent.output_filter.apply(np.float32([[0, 0], [1, 1]]))
    np.testing.assert_allclose(middle, MIDDLE)
    np.testing.assert_allclose(edge - middle, HALF)


@pytest.mark.parametrize("conservatism", [0.0, 0.4, 5.0])
def test_discrete_cql_equals_a_plain_program(conservatism):
    agent = rl.DiscreteCQLAgentParameters(
        algorithm=rl.CQLAlgorithmParameters(
            conservatism=conservatism, huber=None, target_sync=rl.TargetSync(every=3)
        ),
        network=rl.QNetworkParameters(torso=SMALL),
        optimizer=ADAM,
        **COMMON,
    ).build(context(SEEN, spaces.Discrete(4, start=5)))
    online = plain_actor(agent.learner.network)
    target_network = copy.deepcopy(online)
    optimizer = plain_adam(online, ADAM)
    rng = torch.Generator().manual_seed(3)
    for step, batch in enumerate(batches(8), start=1):
        batch = batch._replace(action=torch.randint(5, 9, (16,), generator=rng))
        plain = mapped(torch.Tensor.double, batch)
        before = plain.observation["x"]
        after = plain.next_observation["x"]
        rows = torch.arange(16)  # [B]
        with torch.no_grad():
            next_value = target_network(after)[rows, online(after).argmax(dim=1)]
        values = online(before)
        of_data = values[rows, batch.action - 5]
        error = of_data - (plain.reward + plain.discount * next_value)
        gap = torch.log(values.exp().sum(dim=1)) - of_data
        loss = 0.5 * error**2 + conservatism * gap
        plain_step(optimizer, (plain.weight * loss).mean(), online, ADAM)
        if step % 3 == 0:
            target_network = copy.deepcopy(online)
        agent.learn_from_batch(batch)
    assert_same_network(plain_actor(agent.learner.network), online)


def test_discrete_cql_refuses_a_box():
    with pytest.raises(SpaceError, match="acts in a Discrete space, not in Box"):
        rl.DiscreteCQLAgentParameters(**COMMON).build(context(SEEN, BOX))
