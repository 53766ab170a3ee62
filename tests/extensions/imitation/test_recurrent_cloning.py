"""Behaviour cloning of recurrent policies: its loss against a plain program, and from data."""

import numpy as np
import pytest
import torch
from gymnasium import spaces
from plain_recurrence import (
    PlainRecurrentNetwork,
    assert_same_loss,
    plain_sequences,
    played,
    weighted_batch,
)

import coach_rl as rl
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.records import HIDDEN_STATE
from coach_rl.extensions.data.recorded import Recorded, read_into
from tests.agents.decisions import context, outcome, request, transition_batch

SEEN = {"x": spaces.Box(-99, 99, (3,), np.float32)}
BOX = spaces.Box(-1, 1, (2,), np.float32)


def torso(layer):
    return rl.TorsoParameters(
        embedder=(5,), recurrence=layer, middleware=(6,), activation="tanh", orthogonal=False
    )


def cloning(layer, **changes):
    draws = rl.SequenceParameters(length=6, burn_in=2)
    settings = {
        "policy": rl.PolicyParameters(torso=torso(layer)),
        "learning": rl.LearningParameters(batch=24, learning_starts=30),
        "memory": rl.ReplayMemoryParameters(capacity=4_000, draws=draws),
        "update_mode": "eager",
    }
    return rl.BCAgentParameters(**{**settings, **changes})


def plain_parameters(network, states, burnt, seen):
    """Means and logarithms of standard deviations of the policy after each observation."""
    found = []
    for hidden in network.outputs(states, burnt, seen):
        hidden = network.dense("torso.middleware", hidden, last_is_linear=False)
        mean = torch.tanh(network.dense("head", hidden, last_is_linear=True))
        found.append((mean, network.named["log_std"].clamp(-5, 2)))
    return found


def log_prob(parameters, action):
    mean, log_std = parameters
    return torch.distributions.Normal(mean, log_std.exp()).log_prob(action).sum()


@pytest.mark.parametrize("layer", [rl.GRU(size=4), rl.LSTM(size=3)], ids=["gru", "lstm"])
@pytest.mark.parametrize("loss", ["likelihood", "squared"])
def test_loss_of_sequences_equals_plain_program(layer, loss):
    agent = played(cloning(layer, loss=loss), SEEN, BOX)
    learner = agent.learner
    batch = weighted_batch(agent)
    size = batch.observation[HIDDEN_STATE].shape[1]
    network = PlainRecurrentNetwork(
        learner.network, learner.network.online, slice(0, size), "torso.embedder"
    )
    total = 0.0
    for each in plain_sequences(batch):
        found = plain_parameters(network, each.state, each.burnt, each.now)
        for parameters, action, weight in zip(found, each.action, each.weight, strict=True):
            if loss == "squared":
                total = total + ((parameters[0] - action) ** 2).mean() / int(batch.valid.sum())
            else:
                total = total - weight * log_prob(parameters, action) / len(batch.reward)
    assert_same_loss(learner.loss, learner.network, batch, {}, total, network.flat)


def test_policy_acts_and_learns_in_the_same_hidden_states():
    agent = cloning(rl.GRU(size=4)).build(context(SEEN, BOX, num_envs=1))
    network = agent.learner.network
    plain = PlainRecurrentNetwork(network, network.online, slice(0, 4), "torso.embedder")
    seen = torch.randn(5, 3, generator=torch.Generator().manual_seed(0))
    found = plain_parameters(plain, torch.zeros(4), [], list(seen.double()))
    batch = transition_batch(
        {"x": seen, HIDDEN_STATE: torch.zeros(1, 4)}, torch.full((5, 2), 0.3), {}
    )
    loss, _ = agent.learner.loss(network.online, batch, {})
    action = torch.full((2,), 0.3).double()
    expected = -sum(log_prob(parameters, action) for parameters in found) / 5
    assert loss.item() == pytest.approx(expected.item(), abs=1e-6)
    rows = agent.new_rows(1, 0)
    for step, (mean, _) in enumerate(found):
        shown = request({"x": seen[step : step + 1].numpy()}, starts=step == 0, greedy=True)
        taken = agent.act(rows, shown, Clock(phase=Phase.TEST))
        np.testing.assert_allclose(taken[0], mean.detach().numpy(), atol=1e-6)
        after = {"x": seen[(step + 1) % 5][None].numpy()}
        agent.observe(rows, outcome(after), Clock(phase=Phase.TEST))


def remembered(episodes, length, seed=0):
    """Data in which the action is the cue of the episode's first observation."""
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(episodes):
        cue = rng.choice([-0.5, 0.5])
        seen = np.zeros((length + 1, 3), np.float32)
        seen[0, 0] = cue
        ends = np.arange(length) == length - 1
        found.append(
            {
                "/observations/x": seen[:-1],
                "/next_observations/x": seen[1:],
                "/actions": np.full((length, 2), cue, np.float32),
                "/rewards": np.zeros(length, np.float32),
                "/terminated": ends,
                "/truncated": np.zeros(length, np.bool_),
                "/durations": np.ones(length, np.int64),
            }
        )
    return Recorded.of(found)


def test_it_learns_from_data_what_single_observations_do_not_show():
    draws = rl.SequenceParameters(length=4, burn_in=4)  # stored states are of the first weights
    params = cloning(
        rl.GRU(size=8),
        memory=rl.ReplayMemoryParameters(capacity=1_000, draws=draws),
        learning=rl.LearningParameters(batch=64, learning_starts=1),
        optimizer=rl.AdamParameters(learning_rate=0.01),
        loss="squared",
    )
    agent = params.build(context(SEEN, BOX))
    read_into(agent, remembered(40, 4), num_rows=2, seed=0)
    for _ in range(300):
        agent.learn_from_batch(agent.memory.sample(64))
    with torch.no_grad():
        loss, _ = agent.learner.loss(agent.learner.network.online, agent.memory.sample(64), {})
    assert loss < 0.01  # 0.25 * 3 / 4 without memory


def test_data_are_stored_with_the_hidden_states_that_the_policy_had():
    agent = cloning(rl.GRU(size=4)).build(context(SEEN, BOX))
    network = agent.learner.network
    plain = PlainRecurrentNetwork(network, network.online, slice(0, 4), "torso.embedder")
    data = remembered(6, 7)
    read_into(agent, data, num_rows=2, seed=0)
    kept = agent.memory.trajectories()
    (states,) = (kept[path] for path in kept if path.endswith(HIDDEN_STATE))
    (actions,) = (kept[path] for path in kept if path.endswith("/actions"))
    seen = torch.from_numpy(data.columns["/observations/x"]).double()
    first = plain.outputs(torch.zeros(4), [], list(seen[:7]))
    np.testing.assert_array_equal(states[0, 0], 0)
    for step in range(1, 7):
        np.testing.assert_allclose(states[0, step], first[step - 1].detach(), atol=1e-6)
    np.testing.assert_array_equal(states[0, 7], 0)  # the next episode
    np.testing.assert_array_equal(actions[0, :7], data.columns["/actions"][:7])
