"""TD3+BC, IQL and discrete CQL against plain torch programs in double precision."""

import copy

import numpy as np
import pytest
import torch
from decisions import context
from gymnasium import spaces
from plain_learners import (
    BOX,
    HALF,
    MIDDLE,
    SEEN,
    SMALL,
    assert_same_network,
    batches,
    doubles,
    follow,
    plain_actor,
    plain_critics,
    values_of,
)
from torch import nn

from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.architectures.continuous_control import ActorParameters, CriticParameters
from coach_rl.architectures.gradient_step import AdamParameters, TargetSync, mapped
from coach_rl.architectures.q_network import QNetworkParameters
from coach_rl.core.errors import SpaceError
from coach_rl.extensions.imitation.policy_network import PolicyParameters
from coach_rl.extensions.offline.discrete_cql import (
    CQLAlgorithmParameters,
    DiscreteCQLAgentParameters,
)
from coach_rl.extensions.offline.iql import IQLAgentParameters, IQLAlgorithmParameters
from coach_rl.extensions.offline.td3_bc import TD3BCAgentParameters, TD3BCAlgorithmParameters
from coach_rl.memories import ReplayMemoryParameters, TransitionBatch

RATE = 0.01
EPSILON = 1e-4
"""Large beside rounding, so that single and double precision stay together."""
ADAM = AdamParameters(learning_rate=RATE, epsilon=EPSILON)
COMMON = {
    "learning": LearningParameters(batch=16, learning_starts=1),
    "memory": ReplayMemoryParameters(capacity=200),
    "update_mode": "eager",
}


def adam(network):
    return torch.optim.Adam(network.parameters(), RATE, eps=EPSILON)


def take_step(optimizer, loss):
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


class PlainTD3BC:
    """Fujimoto & Gu 2021, equations 3 to 5, on TD3."""

    def __init__(self, agent):
        self.settings = agent.params.algorithm
        self.actor = plain_actor(agent.learner.actor)
        self.critics = plain_critics(agent.learner.critics)
        self.actor_target = copy.deepcopy(self.actor)
        self.critics_target = copy.deepcopy(self.critics)
        self.actor_adam = adam(self.actor)
        self.critics_adam = adam(self.critics)
        self.noise = torch.Generator()
        self.noise.set_state(agent.noise_rng.get_state())
        self.taken = 0

    def step(self, batch):
        plain, share = doubles(batch)
        before = plain.observation["x"]
        after = plain.next_observation["x"]
        settings = self.settings
        noise = torch.randn(share.shape, generator=self.noise).double() * settings.target_noise
        limit = settings.target_noise_clip
        with torch.no_grad():
            noisy = torch.tanh(self.actor_target(after)) + noise.clamp(-limit, limit)
            lower = values_of(self.critics_target, after, noisy.clamp(-1, 1)).amin(dim=0)
            target = plain.reward + plain.discount * lower
        error = values_of(self.critics, before, share) - target
        take_step(self.critics_adam, (plain.weight * 0.5 * error**2).mean(dim=1).sum())
        self.taken += 1
        if self.taken % settings.policy_delay:
            return
        chosen = torch.tanh(self.actor(before))
        values = values_of(self.critics[:1], before, chosen)[0]
        scale = settings.alpha / values.abs().mean().detach()
        loss = -scale * values.mean() + nn.functional.mse_loss(chosen, share)
        take_step(self.actor_adam, loss)
        follow(self.actor_target, self.actor, settings.target_sync.rate)
        follow(self.critics_target, self.critics, settings.target_sync.rate)


@pytest.mark.parametrize("algorithm", [{}, {"alpha": 0.3}, {"policy_delay": 1}], ids=str)
def test_td3_bc_equals_a_plain_program(algorithm):
    agent = TD3BCAgentParameters(
        algorithm=TD3BCAlgorithmParameters(**algorithm),
        actor=ActorParameters(torso=SMALL),
        critic=CriticParameters(torso=SMALL),
        actor_optimizer=ADAM,
        critic_optimizer=ADAM,
        **COMMON,
    ).build(context(SEEN, BOX))
    plain = PlainTD3BC(agent)
    for batch in batches(8):
        plain.step(batch)
        agent.learn_from_batch(batch)
    assert_same_network(plain_actor(agent.learner.actor), plain.actor)
    assert_same_network(plain_critics(agent.learner.critics), plain.critics)


class PlainIQL:
    """Kostrikov et al. 2022, equations 5 to 7, in the order of the authors' code."""

    def __init__(self, agent):
        self.settings = agent.params.algorithm
        learner = agent.learner
        self.policy = plain_actor(learner.policy)
        named = learner.policy.named(learner.policy.online)
        self.log_std = nn.Parameter(named["log_std"].double().clone())
        self.value = plain_actor(learner.value)
        self.critics = plain_critics(learner.critics)
        self.critics_target = copy.deepcopy(self.critics)
        both = nn.ParameterList([*self.policy.parameters(), self.log_std])
        self.policy_adam = adam(both)
        self.value_adam = adam(self.value)
        self.critics_adam = adam(self.critics)

    def step(self, batch):
        plain = mapped(torch.Tensor.double, batch)  # the policy acts in [-1, 1]
        before = plain.observation["x"]
        share = plain.action
        settings = self.settings
        wanted = values_of(self.critics_target, before, share).amin(dim=0).detach()
        error = wanted - self.value(before)[:, 0]
        weight = (settings.expectile - (error < 0).double()).abs()
        take_step(self.value_adam, (plain.weight * weight * error**2).mean())
        advantage = wanted - self.value(before)[:, 0].detach()
        weight = (settings.temperature * advantage).exp().clamp(max=settings.largest_weight)
        std = self.log_std.clamp(-5, 2).exp()
        normal = torch.distributions.Normal(torch.tanh(self.policy(before)), std)
        log_prob = normal.log_prob(share).sum(dim=1)
        take_step(self.policy_adam, -(plain.weight * weight * log_prob).mean())
        after = plain.next_observation["x"]
        target = plain.reward + plain.discount * self.value(after)[:, 0].detach()
        error = values_of(self.critics, before, share) - target
        take_step(self.critics_adam, (plain.weight * 0.5 * error**2).mean(dim=1).sum())
        follow(self.critics_target, self.critics, settings.target_sync.rate)


@pytest.mark.parametrize(
    "algorithm",
    [{}, {"expectile": 0.9, "temperature": 10.0}, {"temperature": 2.0, "largest_weight": 1.5}],
    ids=str,
)
def test_iql_equals_a_plain_program(algorithm):
    agent = IQLAgentParameters(
        algorithm=IQLAlgorithmParameters(**algorithm),
        policy=PolicyParameters(torso=SMALL),
        critic=CriticParameters(torso=SMALL),
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
    learner = agent.learner
    assert_same_network(plain_actor(learner.policy), plain.policy)
    assert_same_network(plain_actor(learner.value), plain.value)
    assert_same_network(plain_critics(learner.critics), plain.critics)
    log_std = learner.policy.named(learner.policy.online)["log_std"].double()
    torch.testing.assert_close(log_std, plain.log_std.detach(), rtol=1e-3, atol=2e-5)


def test_iql_policy_acts_within_the_bounds_of_a_box():
    agent = IQLAgentParameters(**COMMON).build(context(SEEN, BOX))
    assert agent.action_space == spaces.Box(-1, 1, (2,))
    middle, edge = agent.output_filter.apply(np.float32([[0, 0], [1, 1]]))
    np.testing.assert_allclose(middle, MIDDLE)
    np.testing.assert_allclose(edge - middle, HALF)


def discrete_batches(count):
    rng = torch.Generator().manual_seed(3)
    return [
        TransitionBatch(
            observation={"x": torch.randn(16, 3, generator=rng)},
            action=torch.randint(5, 9, (16,), generator=rng),
            reward=torch.randn(16, generator=rng),
            next_observation={"x": torch.randn(16, 3, generator=rng)},
            discount=torch.where(torch.rand(16, generator=rng) < 0.3, 0.0, 0.9),
            weight=0.2 + torch.rand(16, generator=rng),
            position=torch.arange(16),
        )
        for _ in range(count)
    ]


@pytest.mark.parametrize("conservatism", [0.0, 0.4, 5.0])
def test_discrete_cql_equals_a_plain_program(conservatism):
    agent = DiscreteCQLAgentParameters(
        algorithm=CQLAlgorithmParameters(
            conservatism=conservatism, huber=None, target_sync=TargetSync(every=3)
        ),
        network=QNetworkParameters(torso=SMALL),
        optimizer=ADAM,
        **COMMON,
    ).build(context(SEEN, spaces.Discrete(4, start=5)))
    online = plain_actor(agent.learner.network)
    target_network = copy.deepcopy(online)
    optimizer = adam(online)
    for step, batch in enumerate(discrete_batches(8), start=1):
        plain = mapped(torch.Tensor.double, batch)
        before = plain.observation["x"]
        after = plain.next_observation["x"]
        rows = torch.arange(16)
        with torch.no_grad():
            next_value = target_network(after)[rows, online(after).argmax(dim=1)]
        values = online(before)
        of_data = values[rows, batch.action - 5]
        error = of_data - (plain.reward + plain.discount * next_value)
        gap = torch.log(values.exp().sum(dim=1)) - of_data
        loss = 0.5 * error**2 + conservatism * gap
        take_step(optimizer, (plain.weight * loss).mean())
        if step % 3 == 0:
            target_network = copy.deepcopy(online)
        agent.learn_from_batch(batch)
    assert_same_network(plain_actor(agent.learner.network), online)


def test_discrete_cql_refuses_a_box():
    with pytest.raises(SpaceError, match="acts in a Discrete space, not in Box"):
        DiscreteCQLAgentParameters(**COMMON).build(context(SEEN, BOX))
