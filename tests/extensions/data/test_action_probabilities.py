"""Probabilities of the actions that agents send, beside how often they do."""

from dataclasses import replace
from statistics import NormalDist

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.clock import Clock, ConstantSchedule, Phase
from coach_rl.core.records import ALLOWED
from coach_rl.extensions.data.action_probabilities import (
    Choices,
    SquashedNormal,
    in_agents_space,
    policy_of,
    random_policy_of,
    recorded_log_prob,
)
from tests.agents.decisions import context, request
from tests.builders import created, flat

SEEN = {"x": spaces.Box(-9, 9, (3,))}
ROWS = 20_000
"""Draws, each in a row of its own."""
SMALL = rl.TorsoParameters(middleware=(8,), activation="relu", orthogonal=False)
MEMORY = rl.ReplayMemoryParameters(capacity=100)
LEARNING = rl.LearningParameters(batch=8, learning_starts=8)
FIVE = spaces.Discrete(5, start=3)
SIX = spaces.MultiDiscrete([2, 3])
EXPLORING = Clock(phase=Phase.TEST, samples=True)
BOX = spaces.Box(np.array([-2, -1]), np.array([3, 0]), dtype=np.float32)
UNEVEN = rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=-3, high=5),))


def dqn(exploration):
    return rl.DQNAgentParameters(
        network=rl.QNetworkParameters(torso=SMALL),
        exploration=exploration,
        memory=MEMORY,
        learning=LEARNING,
    )


def sac(**more):
    torsos = {"actor": rl.ActorParameters(torso=SMALL), "critic": rl.CriticParameters(torso=SMALL)}
    return rl.SACAgentParameters(**torsos, memory=MEMORY, learning=LEARNING, **more)


def bc(**more):
    return rl.BCAgentParameters(
        policy=rl.PolicyParameters(torso=SMALL), memory=MEMORY, learning=LEARNING, **more
    )


EPSILON = dqn(rl.EpsilonGreedy(epsilon=ConstantSchedule(value=0.4)))
DISCRETE = {
    "PPO": (rl.PPOAgentParameters(), FIVE),
    "PPO, two choices": (rl.PPOAgentParameters(), SIX),
    "DQN, epsilon-greedy": (EPSILON, FIVE),
    "DQN, softmax": (dqn(rl.Boltzmann(temperature=ConstantSchedule(value=0.2))), FIVE),
    "SAC": (sac(), FIVE),
    "cloned": (bc(), FIVE),
}
CONTINUOUS = {
    "PPO": rl.PPOAgentParameters(),
    "PPO, in units of the Box": rl.PPOAgentParameters(scale_actions=False),
    "PPO, behind a filter": rl.PPOAgentParameters(output_filter=UNEVEN),
    "SAC": sac(),
    "SAC, behind a filter": sac(output_filter=UNEVEN),
    "cloned": bc(),
}


def sent_by(params, space, clock=EXPLORING):
    """An agent, its filtered observations and the actions that it sends in one situation."""
    agent = params.build(context(SEEN, space))
    rows = agent.new_rows(ROWS, 0)
    seen = {"x": np.broadcast_to(np.float32([1.0, -0.5, 2.0]), (ROWS, 3)).copy()}
    sent = agent.act(rows, request(seen), clock)
    return agent, rows.pending, sent


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", DISCRETE)
def test_probabilities_are_the_frequencies_of_actions(name):
    agent, observation, sent = sent_by(*DISCRETE[name])
    policy = policy_of(agent, observation, EXPLORING)
    chances = np.exp(policy.log_prob(in_agents_space(agent, sent)))
    kinds, of, counts = np.unique(sent, axis=0, return_inverse=True, return_counts=True)
    assert len(kinds) > 1
    for kind in range(len(kinds)):
        own = chances[of.ravel() == kind]
        chance = own.mean()
        assert np.ptp(own) < 1e-6
        assert counts[kind] / ROWS == pytest.approx(chance, abs=4 * (0.25 / ROWS) ** 0.5)


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", DISCRETE)
def test_listed_actions_have_the_probabilities_that_they_are_given(name):
    agent, observation, _ = sent_by(*DISCRETE[name])
    policy = policy_of(agent, observation, EXPLORING)
    actions, chances = policy.weighted_actions(1, np.random.default_rng(0))
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    for number in range(chances.shape[1]):
        found = np.exp(policy.log_prob(actions[:, number]))
        np.testing.assert_allclose(found, chances[:, number], atol=1e-12)


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", CONTINUOUS)
def test_densities_fit_the_drawn_actions(name):
    """1 / density is on average the size of where actions are, of each element between bounds."""
    agent, observation, sent = sent_by(CONTINUOUS[name], BOX)
    policy = policy_of(agent, observation, EXPLORING)
    log_prob = policy.log_prob(in_agents_space(agent, sent))
    is_inside = ((sent > BOX.low) & (sent < BOX.high)).all(axis=1)
    inverse = np.where(is_inside, np.exp(-log_prob), 0.0)
    # tails that are hardly drawn weigh most, so that only what is near the middle is summed
    is_near = (np.abs(sent - np.median(sent, axis=0)) < 0.3 * (BOX.high - BOX.low)).all(axis=1)
    low = np.maximum(np.median(sent, axis=0) - 0.3 * (BOX.high - BOX.low), BOX.low)
    high = np.minimum(np.median(sent, axis=0) + 0.3 * (BOX.high - BOX.low), BOX.high)
    error = (inverse * is_near).std() / ROWS**0.5
    assert (inverse * is_near).mean() == pytest.approx(np.prod(high - low), abs=4 * error)
    assert error < 0.1 * np.prod(high - low)


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", ["PPO", "PPO, in units of the Box", "PPO, behind a filter"])
def test_action_at_a_bound_has_the_probability_of_all_beyond(name):
    box = spaces.Box(-0.7, 0.9, (1,))
    agent, observation, sent = sent_by(CONTINUOUS[name], box)
    log_prob = policy_of(agent, observation, EXPLORING).log_prob(in_agents_space(agent, sent))
    for bound in (box.low, box.high):
        there = (sent == bound).all(axis=1)
        chance = np.exp(log_prob[there]).mean()
        assert np.ptp(np.exp(log_prob[there])) < 1e-5
        assert there.mean() == pytest.approx(chance, abs=4 * (0.25 / ROWS) ** 0.5)
        assert chance > 0.05


def test_density_does_not_depend_on_the_units_in_which_a_policy_acts():
    """The same distribution of actions, by a policy in [-1, 1] and by one in [-3, 5]."""
    log_probs = []
    sent = np.float32([[0.5, -0.25], [2.0, -0.75]])
    for name in ("SAC", "SAC, behind a filter"):
        agent = CONTINUOUS[name].build(context(SEEN, BOX))
        rows = agent.new_rows(2, 0)
        agent.act(rows, request({"x": np.ones((2, 3), np.float32)}), EXPLORING)
        policy = policy_of(agent, rows.pending, EXPLORING)
        log_probs.append(policy.log_prob(in_agents_space(agent, sent)))
    np.testing.assert_allclose(log_probs[0], log_probs[1], atol=1e-4)


def test_greedy_policies_have_one_action():
    greedy = Clock(phase=Phase.TEST)
    agent, observation, sent = sent_by(EPSILON, FIVE, greedy)
    policy = policy_of(agent, observation, greedy)
    assert np.exp(policy.log_prob(sent)).tolist() == [1.0] * ROWS
    assert np.exp(policy.log_prob(np.where(sent == 3, 4, 3))).tolist() == [0.0] * ROWS
    agent, observation, sent = sent_by(CONTINUOUS["PPO"], BOX, greedy)
    policy = policy_of(agent, observation, greedy)
    assert not policy.has_probabilities
    actions, chances = policy.weighted_actions(9, np.random.default_rng(0))
    np.testing.assert_allclose(agent.output_filter.apply(actions[:, 0]), sent, atol=1e-6)
    assert chances.tolist() == [[1.0]] * ROWS


def test_masked_actions_are_never_taken():
    seen = {**SEEN, "action_mask": spaces.MultiBinary(5)}
    agent = EPSILON.build(context(seen, FIVE, num_envs=4))
    rows = agent.new_rows(4, 0)
    mask = np.int8([[1, 0, 1, 0, 1]] * 4)
    agent.act(rows, request({"x": np.ones((4, 3), np.float32), "action_mask": mask}), EXPLORING)
    for policy in (
        policy_of(agent, rows.pending, EXPLORING),
        random_policy_of(agent, rows.pending, 4),
    ):
        chances = policy.weighted_actions(1, np.random.default_rng(0))[1]
        np.testing.assert_allclose(chances[:, [1, 3]], 0, atol=1e-12)
        np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_allclose(chances[:, [0, 2, 4]], 1 / 3)


def test_where_nothing_is_allowed_the_greedy_action_has_all():
    """As behind the end of an episode: no division of nothing by nothing."""
    seen = {**SEEN, "action_mask": spaces.MultiBinary(5)}
    agent = EPSILON.build(context(seen, FIVE, num_envs=2))
    rows = agent.new_rows(2, 0)
    mask = np.ones((2, 5), np.int8)
    agent.act(rows, request({"x": np.ones((2, 3), np.float32), "action_mask": mask}), EXPLORING)
    allowed = np.array([[False] * 5, [True] * 5])
    policy = policy_of(agent, {**rows.pending, ALLOWED: allowed}, EXPLORING)
    chances = policy.weighted_actions(1, np.random.default_rng(0))[1]
    np.testing.assert_allclose(chances.sum(axis=1), 1)
    np.testing.assert_allclose(np.sort(chances[0]), [0, 0, 0, 0, 1])
    np.testing.assert_allclose(np.sort(chances[1]), [0.08, 0.08, 0.08, 0.08, 0.68])


def test_actions_are_drawn_where_there_are_too_many_to_list():
    chances = np.random.default_rng(0).dirichlet(np.ones(5), (8, 3))  # 8 choices of 5, in 3 rows
    policy = Choices(tuple(np.log(chances)), np.full(8, 2))
    actions, weights = policy.weighted_actions(4_000, np.random.default_rng(1))
    assert actions.shape == (3, 4_000, 8)
    np.testing.assert_allclose(weights, 1 / 4_000)
    shares = np.stack([(actions == 2 + each).mean(axis=1) for each in range(5)], axis=-1)
    np.testing.assert_allclose(shares, chances.swapaxes(0, 1), atol=0.04)


@pytest.mark.parametrize("name", ["PPO", "DQN, epsilon-greedy"])
def test_choices_that_a_filter_makes_of_a_box_have_no_probabilities(name):
    bins = rl.OutputFilter(action=(rl.BoxDiscretization(num_bins=3),))
    agent, observation, _ = sent_by(replace(DISCRETE[name][0], output_filter=bins), BOX)
    for policy in (
        policy_of(agent, observation, EXPLORING),
        policy_of(agent, observation, Clock(phase=Phase.TEST)),
        random_policy_of(agent, observation, ROWS),
    ):
        assert not policy.has_probabilities
        actions, chances = policy.weighted_actions(1, np.random.default_rng(0))
        assert actions.shape == (ROWS, 9)
        np.testing.assert_allclose(chances.sum(axis=1), 1)


def test_random_actions_are_even_in_the_environments_units():
    agent = CONTINUOUS["PPO, behind a filter"].build(context(SEEN, BOX))
    policy = random_policy_of(agent, {}, 2)
    found = policy.log_prob(np.zeros((2, 2), np.float32))
    np.testing.assert_allclose(np.exp(found), 1 / (5 * 1), rtol=1e-5)
    discrete = DISCRETE["PPO, two choices"][0].build(context(SEEN, SIX))
    actions = np.array([[0, 0], [1, 2]])
    np.testing.assert_allclose(np.exp(random_policy_of(discrete, {}, 2).log_prob(actions)), 1 / 6)


def test_noise_that_remembers_has_no_probabilities():
    torsos = {"actor": rl.ActorParameters(torso=SMALL), "critic": rl.CriticParameters(torso=SMALL)}
    noise = rl.OrnsteinUhlenbeckNoise()
    params = rl.DDPGAgentParameters(**torsos, memory=MEMORY, learning=LEARNING, exploration=noise)
    agent, observation, _ = sent_by(params, BOX)
    assert policy_of(agent, observation, EXPLORING) is None


def test_squashed_action_at_a_bound_has_the_probability_of_all_beyond():
    """A normal of mean 7 and standard deviation 1 is beyond 7.254, where tanh is 1 - 1e-6."""
    mean, log_std = np.full((ROWS, 1), 7.0), np.zeros((ROWS, 1))
    box = spaces.Box(-2, 4, (1,))
    policy = SquashedNormal(mean, log_std, box, np.zeros(1))
    drawn = policy.weighted_actions(1, np.random.default_rng(0))[0][:, 0]
    is_at_bound = drawn[:, 0] >= 4 - 3e-6
    beyond = 1 - NormalDist().cdf(np.arctanh(1 - 1e-6) - 7)
    assert is_at_bound.mean() == pytest.approx(beyond, abs=0.02)
    np.testing.assert_allclose(np.exp(policy.log_prob(np.full((1, 1), 4.0))), beyond, rtol=1e-6)


def test_mixed_actions_have_no_probabilities():
    space = spaces.Dict({"kind": spaces.Discrete(3), "distance": spaces.Box(-1, 1, (1,))})
    agent, observation, _ = sent_by(rl.PPOAgentParameters(), space)
    assert policy_of(agent, observation, EXPLORING) is None


def test_decisions_in_heat_up_have_the_probabilities_of_even_draws():
    manager = created(flat(EPSILON, rl.GymnasiumParameters(level="CartPole-v1"), num_envs=2))
    with manager:
        stack = manager.graph.training
        stack.clock.phase = Phase.HEATUP
        stack.reset(0)
        stack.tick()
        found = recorded_log_prob(stack.levels[0], np.array([0, 1]), np.arange(2), stack.clock)
    np.testing.assert_allclose(np.exp(found), 0.5)
