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
from plain_recurrence import played
from torch import nn

import coach_rl as rl
from coach_rl.architectures.gradient_step import mapped
from coach_rl.core.errors import ConfigurationError, ParameterError, SpaceError
from tests.extensions.offline.plain_iql import ADAM, PlainIQL

COMMON = {
    "learning": rl.LearningParameters(batch=16, learning_starts=1),
    "memory": rl.ReplayMemoryParameters(capacity=200),
    "update_mode": "eager",
}
RECURRENT = rl.TorsoParameters(
    embedder=(), recurrence=rl.GRU(size=4), middleware=(6,), activation="relu", orthogonal=False
)


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


def test_discrete_cql_conservative_gap_of_sequences_is_the_mean_without_padding():
    draws = rl.SequenceParameters(length=6)
    params = rl.DiscreteCQLAgentParameters(
        learning=rl.LearningParameters(batch=24, learning_starts=30),
        memory=rl.ReplayMemoryParameters(capacity=4_000, draws=draws),
        network=rl.QNetworkParameters(torso=RECURRENT),
        update_mode="eager",
    )
    agent = played(params, SEEN, spaces.Discrete(3))
    batch = agent.memory.sample(24)
    assert not batch.valid.all()
    network = agent.learner.network
    values = network.call(network.online, batch.observation).squeeze(-1)
    taken = values.gather(1, batch.action.long()[:, None]).squeeze(1)
    expected = (values.logsumexp(dim=1) - taken)[batch.valid].mean()
    _, metrics = agent.learner.loss(network.online, batch, {})
    torch.testing.assert_close(metrics["conservative_gap"], expected)


def test_discrete_cql_refuses_explorations_that_change_the_network():
    with pytest.raises(ParameterError, match=r"exploration is NoisyNet.*e\.g\. EpsilonGreedy"):
        rl.DiscreteCQLAgentParameters(exploration=rl.NoisyNet())


@pytest.mark.parametrize("name", ["policy", "critic", "value"])
def test_iql_refuses_recurrent_networks(name):
    kinds = {"policy": rl.PolicyParameters, "critic": rl.CriticParameters}
    network = kinds[name](torso=RECURRENT) if name in kinds else RECURRENT
    with pytest.raises(ConfigurationError, match=r"IQLAgentParameters.* no recurrent network can"):
        rl.IQLAgentParameters(**{**COMMON, name: network}).build(context(SEEN, BOX))


def run_into_the_world(agent, *, steps=400, **changes):
    """An experiment that learns from data, and then in the world."""
    return rl.BatchGraphParameters(
        data="data:cartpole-expert",
        agent=agent,
        environment=rl.GymnasiumParameters(level="CartPole-v1"),
        schedule=rl.ScheduleParameters(
            training=rl.EnvironmentSteps(steps), evaluation_interval=None
        ),
        **{"updates": 4, **changes},
    )


def test_discrete_cql_learns_on_in_the_world_by_default():
    agent = rl.DiscreteCQLAgentParameters(
        memory=rl.ReplayMemoryParameters(capacity=20_000), update_mode="eager"
    )
    with rl.BatchGraphManager(run_into_the_world(agent, steps=40)) as manager:
        manager.run()
        assert manager.graph.agents["main"].training_steps >= 4 + 40 // 4 - 1


@pytest.mark.parametrize(
    ("starts", "changes", "most"),
    [(50_000, {}, "10,400"), (10_401, {"updates": None, "online": True}, "10,400")],
)
def test_run_whose_agent_would_never_learn_in_the_world_is_refused(starts, changes, most):
    agent = rl.DiscreteCQLAgentParameters(
        memory=rl.ReplayMemoryParameters(capacity=20_000),
        learning=rl.LearningParameters(learning_starts=starts),
    )
    with rl.BatchGraphManager(run_into_the_world(agent, **changes)) as manager:
        manager.create_graph()
        with pytest.raises(ConfigurationError, match=f"for {starts:,} .* has {most} at most"):
            manager.run()


def test_discount_is_on_the_panels_of_presets_that_learn_values():
    presets = {name: rl.load_preset(rl.find_preset(f"Mujoco_{name}")) for name in ("BC", "IQL")}
    assert {name for name, each in presets.items() if "discount" in each.panel} == {"IQL"}
