"""Behaviour cloning: its loss against plain programs, and every space of actions that PPO has."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ConfigurationError, SpaceError
from tests.agents.decisions import context, request, transition, transition_batch

SEEN = spaces.Dict({"x": spaces.Box(-9, 9, (3,))})
SMALL = rl.TorsoParameters(middleware=(8,), activation="relu", orthogonal=False)
EPSILON = 1e-4
COMMON = {
    "policy": rl.PolicyParameters(torso=SMALL),
    "optimizer": rl.AdamParameters(learning_rate=0.01, epsilon=EPSILON),
    "learning": rl.LearningParameters(batch=64, learning_starts=1),
    "memory": rl.ReplayMemoryParameters(capacity=400),
    "update_mode": "eager",
}


def build(space, **changes):
    return rl.BCAgentParameters(**{**COMMON, **changes}).build(context(SEEN, space))


def plain_network(agent):
    """The policy's layers in double precision, and its log standard deviations."""
    network = agent.learner.network
    named = {name: value.double().clone() for name, value in network.named(network.online).items()}
    return {name: value.requires_grad_() for name, value in named.items()}


def outputs(named, observation):
    weights = [name.removesuffix(".weight") for name in named if name.endswith(".weight")]
    hidden, last = weights
    values = torch.relu(observation @ named[f"{hidden}.weight"].T + named[f"{hidden}.bias"])
    return values @ named[f"{last}.weight"].T + named[f"{last}.bias"]


def likelihood_of_box(named, observation, action):
    std = named["log_std"].clamp(-5, 2).exp()
    normal = torch.distributions.Normal(torch.tanh(outputs(named, observation)), std)
    return -normal.log_prob(action).sum(dim=1)


def squared(named, observation, action):
    return ((torch.tanh(outputs(named, observation)) - action) ** 2).mean(dim=1)


def likelihood_of_choice(named, observation, action):
    logits = outputs(named, observation)
    return -torch.distributions.Categorical(logits=logits).log_prob(action - 5)


CASES = {
    "box": (spaces.Box(-1, 1, (2,)), "likelihood", likelihood_of_box),
    "squared": (spaces.Box(-1, 1, (2,)), "squared", squared),
    "discrete": (spaces.Discrete(4, start=5), "likelihood", likelihood_of_choice),
}


def actions_of(space, count, rng):
    if isinstance(space, spaces.Box):
        return torch.rand(count, 2, generator=rng) * 2 - 1
    return torch.randint(5, 9, (count,), generator=rng)


@pytest.mark.parametrize("case", CASES)
def test_it_learns_as_a_plain_program_does(case):
    space, loss, plain_loss = CASES[case]
    agent = build(space, loss=loss)
    named = plain_network(agent)
    adam = torch.optim.Adam(named.values(), 0.01, eps=EPSILON)
    rng = torch.Generator().manual_seed(0)
    for _ in range(8):
        observation = torch.randn(16, 3, generator=rng)
        action = actions_of(space, 16, rng)
        batch = transition_batch({"x": observation}, action, {"x": observation})
        agent.learn_from_batch(batch)
        found = agent.learner.engine.drain_metrics()["cloning_loss"]
        expected = plain_loss(named, observation.double(), action).mean()
        assert found == pytest.approx(expected.item(), rel=1e-4, abs=1e-5)
        adam.zero_grad()
        expected.backward()
        adam.step()
    network = agent.learner.network
    for name, value in network.named(network.online).items():
        torch.testing.assert_close(value.double(), named[name].detach(), rtol=1e-3, atol=2e-5)


SPACES = {
    "box": spaces.Box(np.float32([-1, -2]), np.float32([3, 0.5])),
    "discrete": spaces.Discrete(3, start=2),
    "multi-discrete": spaces.MultiDiscrete([2, 3]),
    "multi-binary": spaces.MultiBinary(3),
    "mixed": spaces.Dict({"kind": spaces.Discrete(3), "far": spaces.Box(-2, 2, (1,))}),
}


def teacher(space, observation):
    """An action that follows from the observation, in any space."""
    side = observation["x"][:, 0] > 0
    match space:
        case spaces.Discrete():
            return np.where(side, space.start, space.start + 1)
        case spaces.MultiDiscrete():
            return np.stack([side, 2 * side], axis=1).astype(np.int64)
        case spaces.MultiBinary():
            return np.repeat(side[:, None], 3, axis=1).astype(np.int8)
        case spaces.Dict():
            far = np.where(side, 1.5, -1.5).astype(np.float32)[:, None]
            return {"kind": side.astype(np.int64), "far": far}
    return np.where(side[:, None], space.low / 2, space.high / 2).astype(np.float32)


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", SPACES)
def test_it_clones_a_teacher_in_every_space(name):
    space = SPACES[name]
    agent = build(space)
    rng = np.random.default_rng(0)
    seen = {"x": rng.uniform(-1, 1, (400, 3)).astype(np.float32)}
    action = agent.output_filter.inverse(teacher(space, seen))
    for start in range(0, 400, 2):
        here = slice(start, start + 2)
        before = {"x": seen["x"][here]}
        agent.store(
            transition(
                before,
                action[here],
                before,
                reward=0.0,
                terminated=True,
                end=np.ones(2, np.uint8),
                below=np.zeros(2, np.uint8),
                tested=np.zeros(2, np.bool_),
            )
        )
    for _ in range(400):
        agent.learn_from_batch(agent.memory.sample(64))
    rows = agent.new_rows(40, 0)
    fresh = {"x": rng.uniform(-1, 1, (40, 3)).astype(np.float32)}
    fresh["x"][:, 0] += np.where(fresh["x"][:, 0] > 0, 0.3, -0.3)  # away from the border
    taken = agent.act(rows, request(fresh, greedy=True), Clock(phase=Phase.TEST))
    wanted = teacher(space, fresh)
    if isinstance(space, spaces.Dict):
        assert (taken["kind"] == wanted["kind"]).all()
        np.testing.assert_array_equal(np.sign(taken["far"]), np.sign(wanted["far"]))
    elif isinstance(space, spaces.Box):
        np.testing.assert_allclose(taken, wanted, atol=0.4)
    else:
        np.testing.assert_array_equal(taken, wanted)


def test_squared_loss_refuses_choices():
    with pytest.raises(SpaceError, match="acts in Discrete"):
        build(spaces.Discrete(3), loss="squared")


@pytest.mark.parametrize("name", ["box", "mixed"])
def test_memory_keeps_the_actions_that_are_executed(name):
    agent = build(SPACES[name], policy=rl.PolicyParameters(torso=SMALL, initial_log_std=1.0))
    rows = agent.new_rows(40, 0)
    seen = {"x": np.zeros((40, 3), np.float32)}
    sent = agent.act(rows, request(seen), Clock(phase=Phase.TRAIN))
    kept = rows.choice["action"]
    np.testing.assert_allclose(kept, agent.output_filter.inverse(sent), atol=1e-6)
    assert (np.abs(kept[:, -1]) == 1).any()  # some were drawn beyond the bounds


@pytest.mark.parametrize("name", ["box", "mixed"])
def test_squashed_means_are_within_the_bounds(name):
    inputs = {"x": torch.full((1, 3), 1e4)}
    means = {}
    for squash in (True, False):
        agent = build(SPACES[name], policy=rl.PolicyParameters(torso=SMALL, squash=squash))
        network = agent.learner.network
        parameters = network.call(network.online, inputs)
        means[squash] = parameters[0, : -agent.learner.distribution.log_std_size]
    count = agent.learner.distribution.log_std_size
    assert means[False][-count:].abs().max() > 1
    torch.testing.assert_close(means[True][-count:], torch.tanh(means[False][-count:]))
    torch.testing.assert_close(means[True][:-count], means[False][:-count])  # logits stay


def test_memory_that_draws_by_errors_is_refused():
    prioritised = rl.ReplayMemoryParameters(capacity=400, prioritised=rl.PrioritisedParameters())
    with pytest.raises(ConfigurationError, match=r"has no critic of actions, .* leave memory"):
        build(spaces.Discrete(3), memory=prioritised)
