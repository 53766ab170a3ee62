"""Members whose critics see more than their policies: MAPPO."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from small_agents import ppo
from torch.distributions import Categorical
from torch.nn.functional import linear

from coach_rl.agents.stages.action_masks import ActionMasks
from coach_rl.core.agents import AgentContext
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.groups.agent_group import AgentGroupParameters, GroupMember
from coach_rl.memories.batches import RolloutBatch

KEYS = {"left": 2, "map": 1, "right": 3}
SPACES = EnvironmentSpaces(
    observation=spaces.Dict(
        {key: spaces.Box(-9, 9, (size,), np.float32) for key, size in KEYS.items()}
    ),
    action=spaces.Dict({"left": spaces.Discrete(3), "right": spaces.Discrete(3)}),
)
COUNT = 12


def group(*, shares=None, observation=SPACES.observation):
    members = tuple(
        GroupMember(
            agent=ppo(name, normalised=False),
            actions=name,
            observations=(name,),
            critic_observations=(other, "map"),
            shares=shares,
        )
        for name, other in (("left", "right"), ("right", "left"))
    )
    built = replace(SPACES, observation=observation)
    return AgentGroupParameters(members=members).build(AgentContext(spaces=built, num_envs=2))


def batch_of(rng):
    def drawn(*shape):
        return torch.from_numpy(rng.normal(size=(COUNT, *shape)).astype(np.float32))

    return RolloutBatch(
        observation={key: drawn(size) for key, size in KEYS.items()},
        action=torch.from_numpy(rng.integers(0, 3, COUNT)),
        log_prob=-1.1 + 0.1 * drawn(),
        advantage=drawn(),
        target=drawn(),
        value=drawn(),
        policy=None,
        valid=None,
    )


def plain_loss(named, batch, settings, clip):
    """PPO's loss as in the paper (equation 9), with a critic of all keys, in double precision."""

    def layer(name, values):
        return linear(values, named[f"{name}.weight"], named[f"{name}.bias"])

    def features(torso, *keys):
        seen = torch.cat([batch.observation[key].double() for key in keys], dim=1)
        return torch.tanh(layer(f"{torso}.middleware.0", seen))

    policy = Categorical(logits=layer("policy_head", features("actor_torso", "left")))
    value = layer("value_head", features("critic_torso", "left", "map", "right"))[:, 0]
    advantage = batch.advantage.double()
    advantage = (advantage - advantage.mean()) / (advantage.std(correction=0) + 1e-8)
    ratio = (policy.log_prob(batch.action) - batch.log_prob.double()).exp()
    clipped = ratio.clamp(1 - clip, 1 + clip)
    surrogate = torch.minimum(ratio * advantage, clipped * advantage).mean()
    error = 0.5 * ((value - batch.target.double()) ** 2).mean()
    return (
        -surrogate
        + settings.value_coefficient * error
        - settings.entropy_coefficient * policy.entropy().mean()
    )


def test_gradient_of_a_central_critic_equals_plain_torch_in_double_precision():
    agent = group().members["left"]
    batch = batch_of(np.random.default_rng(0))
    flat = agent.network.online.clone().requires_grad_()
    loss, _ = agent.loss(flat, batch, {"clip": torch.tensor(0.2)})
    (gradient,) = torch.autograd.grad(loss, flat)
    named = {
        name: values.detach().double().requires_grad_()
        for name, values in agent.network.named(agent.network.online).items()
    }
    expected = plain_loss(named, batch, agent.params.algorithm, 0.2)
    assert abs(float(loss.detach()) - float(expected.detach())) < 1e-5
    expected.backward()
    for name, found in agent.network.named(gradient).items():
        torch.testing.assert_close(found.double(), named[name].grad, rtol=1e-4, atol=1e-6)
        assert found.abs().sum() > 0, name


def test_policy_ignores_what_the_critic_alone_sees():
    agent, batch = group().members["left"], batch_of(np.random.default_rng(1))
    seen, others = dict(batch.observation), dict(batch.observation)
    for key in ("map", "right"):
        others[key] = others[key] + 1
    policy, value = agent.model(seen)
    other_policy, other_value = agent.model(others)
    assert torch.equal(policy, other_policy)
    assert not torch.isclose(value, other_value).any()


@pytest.mark.parametrize("shares", [None, "one"])
def test_member_with_a_central_critic_gets_its_mask_and_networks_do_not(shares):
    shown = {key: spaces.Box(-9, 9, (2,), np.float32) for key in KEYS}
    shown |= {f"{name}/action_mask": spaces.MultiBinary(3) for name in ("left", "right")}
    built = group(shares=shares, observation=spaces.Dict(shown))
    agent = built.members[shares or "left"]
    assert agent.stages.of(ActionMasks).key == ("action_mask" if shares else "left/action_mask")
    own, seen = ("observation", ["critic/0", "critic/1"]) if shares else ("left", ["map", "right"])
    assert agent.model.actor_torso.embedder.keys == [own]
    assert sorted(agent.model.critic_torso.embedder.keys) == sorted([own, *seen])


def test_members_that_share_an_agent_see_the_critics_keys_by_number():
    same = {key: spaces.Box(-9, 9, (2,), np.float32) for key in KEYS}
    shared = group(shares="one", observation=spaces.Dict(same))
    assert [each.observations for each in shared.bound] == [
        {"left": "observation", "right": "critic/0", "map": "critic/1"},
        {"right": "observation", "left": "critic/0", "map": "critic/1"},
    ]
    assert shared.members["one"].model.actor_torso.embedder.keys == ["observation"]
