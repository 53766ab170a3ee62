import math

import numpy as np
import pytest
import torch
from decisions import request
from plain_actor_critics import PlainDDPG, learn_alike
from plain_learners import (
    TEST,
    TRAIN,
    assert_same_network,
    batches,
    build,
    doubles,
    frozen,
    moved,
    plain_actor,
    plain_adam,
    plain_critics,
    plain_step,
    values_of,
)
from torch.distributions import Independent, Normal, TransformedDistribution
from torch.distributions.transforms import TanhTransform

from coach_rl.architectures.optimizers import TargetSync

STEPS = 8
LOW, HIGH = -20.0, 2.0


def draw(actor, observation, noise, bounds=(LOW, HIGH)):
    """Shares and log-probabilities by torch's own distributions."""
    mean, log_std = actor(observation).chunk(2, dim=1)
    normal = Normal(mean, log_std.clamp(*bounds).exp())
    # cache_size: the logarithm is taken of the number before squashing, not of its inverse
    squash = TanhTransform(cache_size=1)
    distribution = Independent(TransformedDistribution(normal, [squash]), 1)
    share = squash(normal.mean + normal.stddev * noise)
    return share, distribution.log_prob(share)


class PlainSAC(PlainDDPG):
    """SAC (Haarnoja et al. 2018, algorithm 1)."""

    def __init__(self, agent):
        super().__init__(agent)
        assert len(self.critics) == 2
        at_first = math.log(self.settings.initial_temperature)
        self.log_alpha = torch.nn.Parameter(torch.tensor(at_first, dtype=torch.float64))
        self.temperature = torch.nn.ParameterList([self.log_alpha])
        self.temperature_adam = plain_adam(self.temperature, self.params.temperature_optimizer)
        self.noise = torch.Generator()
        self.noise.set_state(agent.noise_rng.get_state())

    def step(self, batch):
        shape = batch.action.shape
        self.now, self.later = (torch.randn(shape, generator=self.noise).double() for _ in range(2))
        self.alpha = self.log_alpha.detach().exp()
        return super().step(batch)

    def drawn(self, observation, noise):
        return draw(self.actor, observation, noise, self.params.actor.log_std_bounds)

    def next_value(self, plain):
        after = plain.next_observation["x"]
        share, log_prob = self.drawn(after, self.later)
        lower = values_of(self.critics_target, after, share).amin(dim=0)
        return lower - self.alpha * log_prob

    def clipped(self, target):
        return target

    def actor_loss(self, batch):
        before = doubles(batch)[0].observation["x"]
        share, log_prob = self.drawn(before, self.now)
        self.log_prob = log_prob.detach()
        self.metrics["entropy"] = -self.log_prob.mean().item()
        lower = values_of(self.critics, before, share).amin(dim=0)
        return (self.alpha * log_prob - lower).mean()

    def step_actor(self, batch):
        super().step_actor(batch)
        if not self.settings.learn_temperature:
            return
        entropy = self.settings.target_entropy
        entropy = -2.0 if entropy is None else entropy  # minus the elements of an action
        loss = -(self.log_alpha * (self.log_prob + entropy)).mean()
        self.metrics["temperature"] = self.alpha.item()
        self.metrics["temperature_gradient_norm"] = plain_step(
            self.temperature_adam, loss, self.temperature, self.params.temperature_optimizer
        )

    def td_error(self, errors):
        return errors.abs().mean(dim=0)

    def assert_same(self, agent):
        critics = agent.learner.critics
        assert_same_network(plain_actor(agent.learner.actor), self.actor)
        assert_same_network(plain_critics(critics), self.critics)
        assert_same_network(plain_critics(critics, critics.target), self.critics_target)
        log_alpha = agent.learner.temperature.online.item()
        assert log_alpha == pytest.approx(self.log_alpha.item(), abs=1e-5)


@pytest.mark.parametrize(
    ("algorithm", "changes"),
    [
        ({}, {}),
        ({"huber": 0.7}, {}),
        ({"target_entropy": 1.5}, {}),
        ({"initial_temperature": 0.2, "learn_temperature": False}, {}),
        ({"target_sync": TargetSync(rate=0.3)}, {}),
        ({"target_sync": TargetSync(every=3)}, {}),
        ({}, {"actor": {"log_std_bounds": (-0.5, 0.1)}}),
        ({}, {"adam": {"l2": 0.3}}),
        ({}, {"adam": {"max_gradient_norm": 0.05}}),
    ],
    ids=lambda value: ", ".join(value) or "plain",
)
def test_it_learns_as_a_plain_torch_version_does(algorithm, changes):
    adam = {"epsilon": 1e-4, **changes.get("adam", {})}
    agent = build("sac", algorithm=algorithm, **{**changes, "adam": adam})
    plain = PlainSAC(agent)
    start = frozen(plain.actor)
    learn_alike(agent, plain, batches(STEPS))
    assert moved(plain.actor, start) > 0.03
    change = abs(plain.log_alpha.item() - math.log(plain.settings.initial_temperature))
    assert (change > 0.01) == plain.settings.learn_temperature


def test_fixed_temperature_has_no_learning_rate():
    learner = build("sac", algorithm={"learn_temperature": False}).learner
    assert set(learner.learning_rates) == {"actor_learning_rate", "critic_learning_rate"}


def acted(agent, clock, count=50):
    observation = np.random.default_rng(0).normal(size=(count, 3)).astype(np.float32)
    action = agent.act(
        agent.new_rows(count, seed=0),
        request({"x": observation}),
        clock,
    )
    return observation, action


def test_evaluation_may_ask_the_critics_for_the_best_of_candidates():
    plain, choosy = build("sac"), build("sac", greedy_candidates=16)
    observation, mean = acted(plain, TEST)
    _, chosen = acted(choosy, TEST)
    critics = plain_critics(choosy.learner.critics)

    def worth(actions):
        share = torch.from_numpy((actions - [1.0, -0.75]) / [2.0, 1.25]).double()
        return torch.minimum(*values_of(critics, torch.from_numpy(observation).double(), share))

    # The networks are the same, and so the mean is a candidate: no choice is worse than it.
    better = (worth(chosen) - worth(mean)).detach().numpy()
    assert (better > -1e-6).all()
    assert (better > 1e-3).mean() > 0.5
    # By hand: the mean, 16 draws and 16 places in the box, the same for every row.
    out = torch.from_numpy(plain.learner.acting.outputs({"x": observation}))
    draws = torch.tanh(
        out[:, None, :2] + out[:, None, 2:].clamp(LOW, HIGH).exp() * choosy.learner.acting.normal
    )
    everywhere = choosy.learner.acting.uniform.expand(len(out), -1, -1)
    options = torch.cat([torch.tanh(out[:, None, :2]), draws, everywhere], dim=1).numpy()
    actions = [1.0, -0.75] + options * [2.0, 1.25]
    values = [worth(actions[:, index]) for index in range(33)]
    best = torch.stack(values).argmax(dim=0).numpy()
    expected = actions[np.arange(len(best)), best]
    np.testing.assert_allclose(chosen, expected, rtol=1e-4, atol=1e-5)


def test_exploration_has_no_candidates():
    _, loud = acted(build("sac"), TRAIN)
    _, choosy = acted(build("sac", greedy_candidates=16), TRAIN)
    np.testing.assert_array_equal(loud, choosy)


def test_acting_honours_the_bounds_of_the_deviation():
    agent = build("sac", actor={"log_std_bounds": (-9.0, -8.0)})
    _, quiet = acted(agent, TEST)
    _, loud = acted(agent, TRAIN)
    assert 0 < np.abs(loud - quiet).max() < 0.01
