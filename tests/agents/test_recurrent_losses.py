"""Losses of recurrent DDPG, TD3, both SACs and branching DQN equal those of plain programs."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from gymnasium import spaces
from plain_recurrence import (
    PlainRecurrentCritics,
    PlainRecurrentNetwork,
    assert_same_loss,
    halves,
    plain_sequences,
    played,
    weighted_batch,
)

import coach_rl as rl
from coach_rl.agents.sac_agent import SACBatch
from coach_rl.agents.td3_agent import TD3Batch
from coach_rl.architectures.action_masks import AllowedOutputs
from coach_rl.core.records import ALLOWED
from tests.agents.small_dqns import masks_of

SEEN = {"x": spaces.Box(-99, 99, (3,), np.float32)}
BOX = spaces.Box(np.float32([-1, -2]), np.float32([3, 0.5]))
LOW, HIGH = (torch.from_numpy(each).double() for each in (BOX.low, BOX.high))
SIZES, STARTS = (2, 4, 3), (5, 0, -1)
CHOICES = spaces.MultiDiscrete(SIZES, start=STARTS)
ACTOR, CRITICS = slice(0, 4), slice(4, 10)
"""Columns of the states of actor (GRU, 4) and critics (LSTM, 3) in the hidden state."""
COMMON = {
    "learning": rl.LearningParameters(batch=24, learning_starts=30),
    "memory": rl.ReplayMemoryParameters(
        capacity=4_000, draws=rl.SequenceParameters(length=6, burn_in=2)
    ),
    "update_mode": "eager",
}


def torso(recurrence):
    return rl.TorsoParameters(
        embedder=(5,), recurrence=recurrence, middleware=(6,), activation="tanh", orthogonal=False
    )


def actor_critic(kind, **algorithm):
    classes = {
        "ddpg": (rl.DDPGAgentParameters, rl.DDPGAlgorithmParameters),
        "td3": (rl.TD3AgentParameters, rl.TD3AlgorithmParameters),
        "sac": (rl.SACAgentParameters, rl.SACAlgorithmParameters),
    }
    agent, settings = classes[kind]
    return agent(
        actor=rl.ActorParameters(torso=torso(rl.GRU(size=4, span=9)), log_std_bounds=(-1.0, 0.3)),
        critic=rl.CriticParameters(torso=torso(rl.LSTM(size=3, span=9))),
        algorithm=settings(discount=0.9, **algorithm),
        **COMMON,
    )


def plain_actor(learner, flat):
    return PlainRecurrentNetwork(learner.actor, flat, ACTOR, "torso.embedder")


def head_of(actor, hidden):
    hidden = actor.dense("torso.middleware", hidden, last_is_linear=False)
    return actor.dense("head", hidden, last_is_linear=True)


def shown(action):
    """An action of the box in [-1, 1], as critics see it."""
    return 2 * (action - LOW) / (HIGH - LOW) - 1


def critics_loss(critics, sequences, targets, count, huber=None):
    """The weighted loss of critics by the targets of each sequence, and the errors by place."""
    total, errors = 0.0, {}
    for each, wanted in zip(sequences, targets, strict=True):
        hidden = critics.outputs(each.state, each.burnt, each.now)
        for at, target in enumerate(wanted):
            found = [v[0] - target for v in critics.values(hidden[at], shown(each.action[at]))]
            total = total + each.weight[at] * sum(halves(error, huber) for error in found)
            errors[each.index[at]] = sum(abs(error.item()) for error in found) / len(found)
    return total / count, errors


@pytest.mark.parametrize(
    ("kind", "algorithm"),
    [
        ("ddpg", {}),
        ("ddpg", {"huber": 0.4, "action_penalty": 0.5, "clip_targets": (-1.0, 0.5)}),
        ("td3", {}),
    ],
    ids=["plain", "bounded", "td3"],
)
def test_deterministic_losses_equal_plain_steps(kind, algorithm):
    agent = played(actor_critic(kind, **algorithm), SEEN, BOX)
    learner, batch = agent.learner, weighted_batch(agent)
    silent = TD3Batch(batch, noise=torch.zeros_like(batch.action))
    given = silent if kind == "td3" else batch
    low, high = algorithm.get("clip_targets", (-math.inf, math.inf))
    penalty = algorithm.get("action_penalty", 0.0)
    sequences, count = plain_sequences(batch), len(batch.reward)
    actor, actor_target = (
        plain_actor(learner, flat) for flat in (learner.actor.online, learner.actor.target)
    )
    critic, critic_target = (
        PlainRecurrentCritics(learner.critics, flat, CRITICS)
        for flat in (learner.critics.online, learner.critics.target)
    )
    targets = []
    for each in sequences:
        chosen = actor_target.outputs(each.state, each.before_after, each.after)
        judged = critic_target.outputs(each.state, each.before_after, each.after)
        wanted = []
        for at in range(len(each.index)):
            action = torch.tanh(head_of(actor_target, chosen[at]))
            value = min(value.item() for value in critic_target.values(judged[at], action))
            target = each.reward[at] + each.discount[at] * value
            wanted.append(min(max(target, low), high))
        targets.append(wanted)
    expected, errors = critics_loss(critic, sequences, targets, count, algorithm.get("huber"))
    metrics = assert_same_loss(
        learner.critic_loss, learner.critics, given, {}, expected, critic.flat
    )
    for at, error in errors.items():
        assert abs(metrics["td_error"][at].item()) == pytest.approx(error, rel=1e-4, abs=1e-5)

    losses = []
    for each in sequences:
        chosen = actor.outputs(each.state, each.burnt, each.now)
        judged = critic.outputs(each.state, each.burnt, each.now)
        for at in range(len(each.index)):
            action = torch.tanh(head_of(actor, chosen[at]))
            value = critic.values(judged[at], action)[0]
            losses.append(penalty * (action**2).mean() - value[0])
    expected = sum(losses) / len(losses)
    assert_same_loss(learner.actor_loss, learner.actor, given, {}, expected, actor.flat)


def sampled(actor, hidden, noise):
    """A squashed action in [-1, 1] and its log-probability there (Haarnoja et al., appendix C)."""
    mean, log_std = head_of(actor, hidden).chunk(2)
    log_std = log_std.clamp(-1.0, 0.3)
    action = torch.tanh(mean + log_std.exp() * noise)
    normal = -(noise**2) / 2 - log_std - math.log(2 * math.pi) / 2
    return action, (normal - torch.log(1 - action**2)).sum()


@pytest.mark.parametrize(
    "algorithm", [{}, {"huber": 0.4, "target_entropy": -0.7}], ids=["plain", "bounded"]
)
def test_sac_losses_equal_plain_steps(algorithm):
    params = actor_critic("sac", initial_temperature=0.3, **algorithm)
    agent = played(params, SEEN, BOX)
    learner, batch = agent.learner, weighted_batch(agent)
    noises = torch.randn(2, *batch.action.shape)
    given, (noise, later_noise) = SACBatch(batch, *noises), noises.double()
    sequences, count = plain_sequences(batch), len(batch.reward)
    actor, log_alpha = plain_actor(learner, learner.actor.online), learner.temperature.online
    critics, critics_target = (
        PlainRecurrentCritics(learner.critics, flat, CRITICS)
        for flat in (learner.critics.online, learner.critics.target)
    )
    alpha = math.exp(log_alpha.item())
    targets = []
    for each in sequences:
        chosen = actor.outputs(each.state, each.before_after, each.after)
        judged = critics_target.outputs(each.state, each.before_after, each.after)
        wanted = []
        for at, place in enumerate(each.index):
            action, log_prob = sampled(actor, chosen[at], later_noise[place])
            lower = min(value.item() for value in critics_target.values(judged[at], action))
            soft = lower - alpha * log_prob.item()
            wanted.append(each.reward[at] + each.discount[at] * soft)
        targets.append(wanted)
    expected, errors = critics_loss(critics, sequences, targets, count, algorithm.get("huber"))
    metrics = assert_same_loss(
        learner.critic_loss, learner.critics, given, {}, expected, critics.flat
    )
    for at, error in errors.items():
        assert metrics["td_error"][at].item() == pytest.approx(error, rel=1e-4, abs=1e-5)

    losses, log_probs = [], []
    for each in sequences:
        chosen = actor.outputs(each.state, each.burnt, each.now)
        judged = critics.outputs(each.state, each.burnt, each.now)
        for at, place in enumerate(each.index):
            action, log_prob = sampled(actor, chosen[at], noise[place])
            values = critics.values(judged[at], action)
            losses.append(alpha * log_prob - torch.minimum(*values)[0])
            log_probs.append(log_prob.item())
    expected = sum(losses) / len(losses)
    metrics = assert_same_loss(learner.actor_loss, learner.actor, given, {}, expected, actor.flat)
    assert metrics["entropy"].item() == pytest.approx(-sum(log_probs) / len(log_probs), rel=1e-4)

    flat = log_alpha.double().clone().requires_grad_()
    excess = sum(log_probs) / len(log_probs) + algorithm.get("target_entropy", -2.0)
    scalars = {"log_prob": metrics["log_prob"]}
    assert_same_loss(
        learner.temperature_loss, learner.temperature, given, scalars, -flat[0] * excess, flat
    )


def with_masks(batch):
    rng, rows = np.random.default_rng(3), len(batch.reward)
    now, later = (torch.from_numpy(masks_of(SIZES, rows, rng)) for _ in range(2))
    return batch._replace(
        observation=batch.observation | {ALLOWED: now},
        next_observation=batch.next_observation | {ALLOWED: later},
    )


def columns_of(observation, place):
    """Columns of the allowed actions of each choice."""
    bounds = pairwise(np.cumsum((0, *SIZES)).tolist())
    allowed = observation.get(ALLOWED)
    return [
        [at for at in range(*bound) if allowed is None or allowed[place, at]] for bound in bounds
    ]


def taken_by(action):
    """Columns of the actions [D] that were taken."""
    begins = np.cumsum((0, *SIZES[:-1]))
    counted = action.numpy() - np.array(STARTS)
    return [int(each) for each in begins + counted]


def policy_of(actor, hidden, choices):
    """Probabilities of the allowed actions of each choice."""
    logits = head_of(actor, hidden)
    return [torch.softmax(logits[columns], dim=0) for columns in choices]


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "algorithm", [{}, {"huber": 0.4, "target_entropy_scale": 0.5}], ids=["plain", "bounded"]
)
def test_discrete_sac_losses_equal_plain_steps(algorithm, masked):
    params = actor_critic("sac", initial_temperature=0.3, **algorithm)
    agent = played(params, SEEN, CHOICES)
    learner, batch = agent.learner, weighted_batch(agent)
    if masked:
        learner.output_rules = (AllowedOutputs(),)
        batch = with_masks(batch)
    sequences, count = plain_sequences(batch), len(batch.reward)
    actor, log_alpha = plain_actor(learner, learner.actor.online), learner.temperature.online
    critics, critics_target = (
        PlainRecurrentCritics(learner.critics, flat, CRITICS)
        for flat in (learner.critics.online, learner.critics.target)
    )
    alpha, total = math.exp(log_alpha.item()), 0.0
    for each in sequences:
        with torch.no_grad():
            chosen = actor.outputs(each.state, each.before_after, each.after)
            judged = critics_target.outputs(each.state, each.before_after, each.after)
        found = critics.outputs(each.state, each.burnt, each.now)
        for at, place in enumerate(each.index):
            choices = columns_of(batch.next_observation, place)
            with torch.no_grad():
                probabilities = policy_of(actor, chosen[at], choices)
                lower = torch.minimum(*critics_target.values(judged[at]))
            soft = 0.0
            for columns, prob in zip(choices, probabilities, strict=True):
                soft += (prob * lower[columns]).sum() / len(SIZES)
                soft -= alpha * (prob * prob.log()).sum()
            target = each.reward[at] + each.discount[at] * soft
            for values in critics.values(found[at]):
                errors = [values[column] - target for column in taken_by(each.action[at])]
                losses = [halves(error, algorithm.get("huber")) for error in errors]
                total = total + each.weight[at] * sum(losses) / len(SIZES)
    assert_same_loss(learner.critic_loss, learner.critics, batch, {}, total / count, critics.flat)

    losses, entropies, excesses = [], [], []
    for each in sequences:
        chosen = actor.outputs(each.state, each.burnt, each.now)
        judged = critics.outputs(each.state, each.burnt, each.now)
        for at, place in enumerate(each.index):
            choices = columns_of(batch.observation, place)
            lower, loss, entropy = torch.minimum(*critics.values(judged[at])), 0.0, 0.0
            for columns, prob in zip(choices, policy_of(actor, chosen[at], choices), strict=True):
                loss = loss + (prob * (alpha * prob.log() - lower[columns])).sum()
                entropy -= (prob * prob.log()).sum().item()
            most = sum(math.log(len(columns)) for columns in choices)
            losses.append(loss)
            entropies.append(entropy)
            excesses.append(algorithm.get("target_entropy_scale", 0.98) * most - entropy)
    expected = sum(losses) / len(losses)
    metrics = assert_same_loss(learner.actor_loss, learner.actor, batch, {}, expected, actor.flat)
    assert metrics["entropy"].item() == pytest.approx(sum(entropies) / len(entropies), rel=1e-4)

    flat = log_alpha.double().clone().requires_grad_()
    expected = -flat[0] * sum(excesses) / len(excesses)
    scalars = {"log_prob": metrics["log_prob"]}
    assert_same_loss(learner.temperature_loss, learner.temperature, batch, scalars, expected, flat)


def branch_values(network, hidden):
    """Values of all actions, side by side; with dueling streams equation 1 of Tavakoli et al."""
    hidden = network.dense("torso.middleware", hidden, last_is_linear=False)
    advantages = network.dense("actions", hidden, last_is_linear=True)
    if not network.under("state"):
        return advantages
    state = network.dense("state", hidden, last_is_linear=True)
    parts = torch.split(advantages, SIZES)
    return torch.cat([state + part - part.mean() for part in parts])


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "algorithm",
    [
        {"double": True, "huber": 0.4},
        {"double": False, "huber": None, "clip_targets": (-1.0, 0.7)},
    ],
    ids=["double", "bounded"],
)
@pytest.mark.parametrize("dueling", [False, True])
def test_branching_dqn_loss_equals_plain_steps(dueling, algorithm, masked):
    params = rl.DQNAgentParameters(
        network=rl.QNetworkParameters(
            torso=torso(rl.LSTM(size=4, span=9)), dueling=dueling, streams=(5,) if dueling else ()
        ),
        algorithm=rl.DQNAlgorithmParameters(discount=0.9, **algorithm),
        **COMMON,
    )
    agent = played(params, SEEN, CHOICES)
    wrapped, batch = agent.learner.network, weighted_batch(agent)
    if masked:
        agent.learner.output_rules = (AllowedOutputs(),)
        batch = with_masks(batch)
    online, target = (
        PlainRecurrentNetwork(wrapped, flat, slice(0, 8), "torso.embedder")
        for flat in (wrapped.online, wrapped.target)
    )
    low, high = algorithm.get("clip_targets", (-math.inf, math.inf))
    total, errors = 0.0, {}
    for each in plain_sequences(batch):
        with torch.no_grad():
            judged = target.outputs(each.state, each.before_after, each.after)
            chooser = online.outputs(each.state, each.before_after, each.after)
        found = online.outputs(each.state, each.burnt, each.now)
        for at, place in enumerate(each.index):
            with torch.no_grad():
                values = branch_values(target, judged[at])
                worth = branch_values(online, chooser[at]) if algorithm["double"] else values
            wanted = []
            for columns in columns_of(batch.next_observation, place):
                best = max(columns, key=lambda column, worth=worth: worth[column].item())
                aim = each.reward[at] + each.discount[at] * values[best].item()
                wanted.append(min(max(aim, low), high))
            wanted = [sum(wanted) / len(wanted)] * len(wanted)
            values = branch_values(online, found[at])
            missed = [
                values[column] - aim
                for column, aim in zip(taken_by(each.action[at]), wanted, strict=True)
            ]
            losses = [halves(error, algorithm["huber"]) for error in missed]
            total = total + each.weight[at] * sum(losses) / len(losses)
            errors[place] = sum(abs(error.item()) for error in missed)
    expected = total / len(batch.reward)
    metrics = assert_same_loss(agent.learner.loss, wrapped, batch, {}, expected, online.flat)
    for at, error in errors.items():
        assert metrics["td_error"][at].item() == pytest.approx(error, rel=1e-4, abs=1e-5)
