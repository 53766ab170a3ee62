"""DQN in MultiDiscrete spaces: gradients against a slow version, decisions, and learning."""

import math
from dataclasses import replace
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.architectures.gradient_step import eager_gradient, mapped
from coach_rl.core.records import ALLOWED
from tests.agents.plain_dqn import PlainDQN, PlainQNetwork
from tests.agents.plain_learners import run
from tests.agents.small_dqns import (
    HEADS,
    NETWORKS,
    batches,
    build,
    masked_decisions,
    parameters,
)

SIZES = (2, 4, 3)
ACTIONS = spaces.MultiDiscrete(SIZES, start=[5, 0, -1])
SETTINGS = [
    {"double": False, "huber": 1.0},
    {"double": True, "huber": None},
    {"double": True, "huber": 0.4, "clip_targets": (-1.0, 0.7)},
]


class PlainBranches(PlainQNetwork):
    """Numbers [n, K] of each choice; equation 1 of Tavakoli et al. for dueling streams."""

    def __call__(self, observation):
        features = self.through("torso", observation, last_is_linear=False)
        numbers = self.through("actions", features, last_is_linear=True)
        bounds = [0, *np.cumsum(SIZES).tolist()]
        parts = [numbers.view(self.count, -1)[first:end] for first, end in pairwise(bounds)]
        if not self.layers("state"):
            return parts
        value = self.through("state", features, last_is_linear=True)
        return [
            torch.stack([value + each - sum(part) / len(part) for each in part]) for part in parts
        ]


class PlainBranching(PlainDQN):
    """One sample after the other, one choice after the other."""

    def __init__(self, params, agent):
        self.settings, self.head = params.algorithm, params.network.head
        wrapped = agent.learner.network
        self.online = PlainBranches(wrapped.named(wrapped.online), sum(SIZES))
        self.target = PlainBranches(wrapped.named(wrapped.target), sum(SIZES))
        self.start = agent.action_space.start.tolist()

    def loss(self, sample):
        """The loss of a sample without its weight, and the sum of the choices' errors."""
        after = sample.next_observation["x"]
        with torch.no_grad():
            judged = self.target(after)
            chooser = self.online(after) if self.settings.double else judged
            best = []
            for number, (mine, theirs) in enumerate(zip(judged, chooser, strict=True)):
                worth = [float(self.mean(numbers)) for numbers in theirs]
                if ALLOWED in sample.next_observation:
                    begin = sum(SIZES[:number])
                    mask = sample.next_observation[ALLOWED][begin : begin + len(worth)]
                    worth = [w if ok else -math.inf for w, ok in zip(worth, mask, strict=True)]
                best.append(mine[worth.index(max(worth))])
        predicted = self.online(sample.observation["x"])
        losses, errors = [], []
        for number, numbers in enumerate(predicted):
            taken = int(sample.action[number]) - self.start[number]
            loss, error = self.branch(numbers[taken], best, sample)
            losses.append(loss)
            errors.append(abs(float(error)))
        return sum(losses) / len(losses), sum(errors)

    def branch(self, predicted, best, sample):
        reward, discount = float(sample.reward), float(sample.discount)
        if isinstance(self.head, rl.CategoricalHead):
            # The cross-entropy is linear in the target: its mean over targets is that of the mean.
            losses = [self.categorical(predicted, each, reward, discount)[0] for each in best]
            loss = sum(losses) / len(losses)
            return loss, loss.detach() - self.entropy(best, reward, discount)
        each = [[self.clipped(reward + discount * float(n)) for n in numbers] for numbers in best]
        targets = [sum(column) / len(column) for column in zip(*each, strict=True)]
        if isinstance(self.head, rl.MeanHead):
            return self.regression(predicted[0] - targets[0]), (predicted[0] - targets[0]).detach()
        loss = self.quantiles(predicted, targets)
        return loss, loss.detach()

    def entropy(self, best, reward, discount):
        """Entropy of the mean of the projected targets."""
        flat = torch.zeros(self.head.atoms)
        masses = []
        for atom in range(self.head.atoms):  # read each target's mass off the loss of a spike
            spike = flat.clone()
            spike[atom] = 1.0
            found = [self.categorical(spike, each, reward, discount)[0] for each in best]
            masses.append(sum(found) / len(found))
        # -sum_i m_i log_softmax(spike_a)_i = log(e + n - 1) - m_a
        size = math.log(math.e + self.head.atoms - 1)
        return -sum(m * math.log(m) for each in masses if (m := size - float(each)) > 1e-12)


@pytest.mark.drawn(one_of=3)
@pytest.mark.usefixtures("in_doubles")
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("number", range(len(SETTINGS)))
@pytest.mark.parametrize("network", ["plain", "dueling streams"])
@pytest.mark.parametrize("head", HEADS)
def test_loss_and_gradient_equal_those_of_plain_branches(head, network, number, masked):
    params = parameters(head, NETWORKS[network], SETTINGS[number])
    agent = build(params, ACTIONS, masked=masked)
    learner = agent.learner
    learner.network.online = learner.network.online.double()
    learner.network._target = learner.network.online.clone()
    noise = torch.randn(learner.network.size, generator=torch.Generator().manual_seed(number))
    learner.network.target.add_(0.1 * noise)
    plain = PlainBranching(params, agent)
    (batch,) = batches(1, ACTIONS, seed=number, masked=masked, dtype=np.float64)
    samples = [mapped(lambda column, row=row: column[row], batch) for row in range(12)]
    losses, errors = zip(*map(plain.loss, samples), strict=True)
    expected = sum(w * each for w, each in zip(batch.weight, losses, strict=True)) / 12
    expected.backward()
    gradient, loss, metrics = eager_gradient(learner.loss, learner.network.online, batch, {})
    flat = torch.cat([each.grad.reshape(-1) for each in plain.online.named.values()])
    torch.testing.assert_close(loss, expected.detach(), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(gradient, flat, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(metrics["td_error"], torch.tensor(errors), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    "exploration",
    [
        rl.EpsilonGreedy(epsilon=rl.ConstantSchedule(value=0.5)),
        rl.EpsilonZGreedy(epsilon=rl.ConstantSchedule(value=0.2)),
        rl.Boltzmann(temperature=rl.ConstantSchedule(value=10.0)),
    ],
)
def test_masked_decisions_are_allowed(exploration):
    agent = build(parameters(exploration=exploration), ACTIONS, masked=True, num_envs=50)
    assert (masked_decisions(agent, 100) > 100).all()


class Locks(gymnasium.Env):
    """Three dials, each of which is to be set to the number that it shows."""

    observation_space = spaces.Box(0, 1, (3,), np.float32)
    action_space = spaces.MultiDiscrete([3, 2, 4])

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = 8
        return self._shown(), {}

    def _shown(self):
        self.wanted = self.np_random.integers(self.action_space.nvec)
        return (self.wanted / (self.action_space.nvec - 1)).astype(np.float32)

    def step(self, action):
        reward = float((action == self.wanted).mean())
        self.left -= 1
        return self._shown(), reward, self.left == 0, False, {}


LOCKS = rl.GymnasiumParameters(level="tests.extensions.choices.test_branching_dqn:Locks")
LEARNS = {
    "layers": (64,),
    "learning": rl.LearningParameters(batch=64, learning_starts=200, report_every=100),
    "optimizer": rl.AdamParameters(learning_rate=3e-3),
    "exploration": rl.EpsilonGreedy(epsilon=rl.ConstantSchedule(value=0.3)),
}


def test_branches_learn_all_choices():
    algorithm = {"discount": 0.5, "target_sync": rl.TargetSync(rate=0.05)}
    params = parameters(network={"dueling": True}, algorithm=algorithm, **LEARNS)
    params = replace(params, memory=rl.ReplayMemoryParameters(capacity=2_000, n_step=2))
    _, records = run(params, LOCKS, steps=1_500, evaluation_interval=rl.EnvironmentSteps(1_500))
    evaluation = [each for each in records if each.kind == "evaluation"][-1]
    assert evaluation.scalars["evaluation/reward_mean"] > 7.0  # 8 at most, 2.9 by chance
