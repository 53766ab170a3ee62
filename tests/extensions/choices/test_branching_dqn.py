"""DQN in MultiDiscrete spaces: gradients against a slow version, decisions, and learning."""

import math
from dataclasses import replace
from itertools import pairwise

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces

from coach_rl import Boltzmann
from coach_rl.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.architectures.gradient_step import AdamParameters, TargetSync, eager_gradient, mapped
from coach_rl.architectures.q_network import MeanHead, QNetworkParameters
from coach_rl.architectures.torso import FlattenVector, TorsoParameters
from coach_rl.core.clock import ConstantSchedule
from coach_rl.core.records import ALLOWED
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.environments.gymnasium import GymnasiumParameters
from coach_rl.exploration_policies import EpsilonGreedy
from coach_rl.extensions.distributional.heads import CategoricalHead, QuantileHead
from coach_rl.extensions.exploration import EpsilonZGreedy
from coach_rl.extensions.prioritised import PrioritisedParameters
from coach_rl.extensions.recurrent_layers.gated_recurrence import GRU
from coach_rl.extensions.recurrent_layers.sequences import SequenceParameters
from coach_rl.memories import ReplayMemoryParameters, TransitionBatch
from coach_rl.memories.draws import SingleTransitions
from tests.agents.decisions import context, outcome, request
from tests.agents.plain_dqn import PlainDQN, PlainQNetwork
from tests.agents.plain_learners import TRAIN, manager, run
from tests.agents.resuming import after, assert_resumes

SEEN = spaces.Dict({"x": spaces.Box(-9, 9, (3,))})
SIZES = (2, 4, 3)
ACTIONS = spaces.MultiDiscrete(SIZES, start=[5, 0, -1])
HEADS = {
    "mean": MeanHead(),
    "quantiles": QuantileHead(count=5),
    "categorical": CategoricalHead(atoms=11, low=-1.5, high=2.5),
}
NETWORKS = {"plain": {}, "dueling streams": {"dueling": True, "streams": (5,)}}
SETTINGS = [
    {"double": False, "huber": 1.0},
    {"double": True, "huber": None},
    {"double": True, "huber": 0.4, "clip_targets": (-1.0, 0.7)},
]


@pytest.fixture
def in_doubles(monkeypatch):
    """Networks that leave observations in double precision."""
    monkeypatch.setattr(FlattenVector, "forward", lambda self, values: values.flatten(1))
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def parameters(
    head="mean", network=None, algorithm=None, *, layers=(7, 6), recurrence=None, **changes
):
    given = {
        "learning": LearningParameters(batch=16, learning_starts=1),
        "memory": ReplayMemoryParameters(capacity=2_000),
        "optimizer": AdamParameters(learning_rate=0.02, epsilon=1e-4),
        "update_mode": "eager",
    }
    return DQNAgentParameters(
        algorithm=DQNAlgorithmParameters(**(algorithm or {})),
        network=QNetworkParameters(
            torso=TorsoParameters(middleware=layers, activation="relu", recurrence=recurrence),
            head=HEADS[head],
            **(network or {}),
        ),
        **{**given, **changes},
    )


def build(params, actions=ACTIONS, *, masked=False, num_envs=1):
    count = sum(actions.nvec) if isinstance(actions, spaces.MultiDiscrete) else actions.n
    shown = {"action_mask": spaces.MultiBinary(int(count))} if masked else {}
    return params.build(context({**SEEN.spaces, **shown}, actions, num_envs=num_envs))


def masks_of(sizes, rows, rng):
    """Random masks [rows, M] that allow one action or more of each choice."""
    masks = []
    for size in sizes:
        mask = rng.random((rows, size)) < 0.4
        mask[np.arange(rows), rng.integers(size, size=rows)] = True
        masks.append(mask)
    return np.concatenate(masks, axis=1)


def batch_of(seed, *, masked=False, sizes=SIZES, start=(5, 0, -1), rows=12):
    """As a memory with n-step returns and priorities gives it."""
    rng = np.random.default_rng(seed)

    def seen():
        masks = {ALLOWED: torch.from_numpy(masks_of(sizes, rows, rng))} if masked else {}
        return {"x": torch.from_numpy(rng.normal(size=(rows, 3)))} | masks

    return TransitionBatch(
        observation=seen(),
        action=torch.from_numpy(np.array(start) + rng.integers(sizes, size=(rows, len(sizes)))),
        reward=torch.from_numpy(rng.integers(-15, 16, rows) / 5),
        next_observation=seen(),
        discount=torch.from_numpy(rng.choice([0.9, 0.0, 0.9**3], rows)),
        weight=torch.from_numpy(0.2 + rng.random(rows)),
        position=torch.arange(rows),
    )


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
        said = self.online(sample.observation["x"])
        losses, errors = [], []
        for number, numbers in enumerate(said):
            taken = int(sample.action[number]) - self.start[number]
            loss, error = self.branch(numbers[taken], best, sample)
            losses.append(loss)
            errors.append(abs(float(error)))
        return sum(losses) / len(losses), sum(errors)

    def branch(self, said, best, sample):
        reward, discount = float(sample.reward), float(sample.discount)
        if isinstance(self.head, CategoricalHead):
            # The cross-entropy is linear in the target: its mean over targets is that of the mean.
            losses = [self.categorical(said, each, reward, discount)[0] for each in best]
            loss = sum(losses) / len(losses)
            return loss, loss.detach() - self.entropy(best, reward, discount)
        each = [[self.clipped(reward + discount * float(n)) for n in numbers] for numbers in best]
        targets = [sum(column) / len(column) for column in zip(*each, strict=True)]
        if isinstance(self.head, MeanHead):
            return self.regression(said[0] - targets[0]), (said[0] - targets[0]).detach()
        loss = self.quantiles(said, targets)
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


@pytest.mark.usefixtures("in_doubles")
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("number", range(len(SETTINGS)))
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("head", HEADS)
def test_loss_and_gradient_equal_those_of_plain_branches(head, network, number, masked):
    params = parameters(head, NETWORKS[network], SETTINGS[number])
    agent = build(params, masked=masked)
    learner = agent.learner
    learner.network.online = learner.network.online.double()
    learner.network._target = learner.network.online.clone()
    noise = torch.randn(learner.network.size, generator=torch.Generator().manual_seed(number))
    learner.network.target.add_(0.1 * noise)
    plain, batch = PlainBranching(params, agent), batch_of(number, masked=masked)
    samples = [mapped(lambda column, row=row: column[row], batch) for row in range(12)]
    losses, errors = zip(*map(plain.loss, samples), strict=True)
    expected = sum(w * each for w, each in zip(batch.weight, losses, strict=True)) / 12
    expected.backward()
    gradient, loss, metrics = eager_gradient(learner.loss, learner.network.online, batch, {})
    flat = torch.cat([each.grad.reshape(-1) for each in plain.online.named.values()])
    torch.testing.assert_close(loss, expected.detach(), rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(gradient, flat, rtol=1e-10, atol=1e-10)
    torch.testing.assert_close(metrics["td_error"], torch.tensor(errors), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("head", HEADS)
def test_one_choice_equals_discrete_dqn(head, masked):
    params = parameters(head, {"dueling": True}, {"target_sync": TargetSync(every=2)})
    agents = [
        build(params, space, masked=masked)
        for space in (spaces.Discrete(3, start=5), spaces.MultiDiscrete([3], start=[5]))
    ]
    for seed in range(4):
        batch = batch_of(seed, masked=masked, sizes=(3,), start=(5,))
        batch = mapped(
            lambda column: column.float() if column.is_floating_point() else column, batch
        )
        single = batch._replace(action=batch.action[:, 0])
        found = [
            agent.learn_from_batch(each)["td_error"]
            for agent, each in zip(agents, (single, batch), strict=True)
        ]
        torch.testing.assert_close(found[1], found[0].abs(), rtol=1e-5, atol=1e-6)
    one, many = (agent.learner.network for agent in agents)
    torch.testing.assert_close(many.online, one.online, rtol=1e-5, atol=1e-6)
    rng = np.random.default_rng(0)
    seen = {"x": rng.normal(size=(200, 3)).astype(np.float32)}
    if masked:
        seen["action_mask"] = masks_of((3,), 200, rng).astype(np.int8)
    single, several = (
        agent.act(agent.new_rows(200, seed=3), request(seen), replace(TRAIN, environment_steps=9))
        for agent in agents
    )
    np.testing.assert_array_equal(several[:, 0], single)


@pytest.mark.parametrize(
    "exploration",
    [
        EpsilonGreedy(epsilon=ConstantSchedule(value=0.5)),
        EpsilonZGreedy(epsilon=ConstantSchedule(value=0.2)),
        Boltzmann(temperature=ConstantSchedule(value=10.0)),
    ],
)
def test_masked_decisions_are_allowed(exploration):
    agent = build(parameters(exploration=exploration), masked=True, num_envs=50)
    state, rng = agent.new_rows(50, seed=0), np.random.default_rng(0)
    counts = np.zeros(sum(SIZES))

    def shown():
        seen = {"x": rng.normal(size=(50, 3)).astype(np.float32)}
        return seen | {"action_mask": masks_of(SIZES, 50, rng).astype(np.int8)}

    seen = shown()
    for step in range(100):
        mask, greedy = seen["action_mask"] > 0, rng.random(50) < 0.2
        action = agent.act(state, request(seen, starts=step == 0, greedy=greedy), TRAIN)
        seen = shown()
        agent.observe(state, outcome(seen), TRAIN)
        columns = action - ACTIONS.start + np.cumsum((0, *SIZES[:-1]))
        assert np.take_along_axis(mask, columns, axis=1).all()
        np.add.at(counts, columns, 1)
    assert (counts > 100).all()


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


LOCKS = GymnasiumParameters(level="tests.extensions.choices.test_branching_dqn:Locks")
LEARNS = {
    "layers": (64,),
    "learning": LearningParameters(batch=64, learning_starts=200, report_every=100),
    "optimizer": AdamParameters(learning_rate=3e-3),
    "exploration": EpsilonGreedy(epsilon=ConstantSchedule(value=0.3)),
}


def test_branches_learn_all_choices():
    algorithm = {"discount": 0.5, "target_sync": TargetSync(rate=0.05)}
    params = parameters(network={"dueling": True}, algorithm=algorithm, **LEARNS)
    params = replace(params, memory=ReplayMemoryParameters(capacity=2_000, n_step=2))
    _, records = run(params, LOCKS, steps=1_500, evaluation_interval=EnvironmentSteps(1_500))
    evaluation = [each for each in records if each.kind == "evaluation"][-1]
    assert evaluation.scalars["evaluation/reward_mean"] > 7.0  # 8 at most, 2.9 by chance


@pytest.mark.parametrize("recurrence", [None, GRU(size=6)])
def test_stopped_run_continues_bit_for_bit(tmp_path, recurrence):
    draws = SingleTransitions()
    if recurrence is not None:
        draws = SequenceParameters(length=4, burn_in=2)
    memory = ReplayMemoryParameters(capacity=500, prioritised=PrioritisedParameters(), draws=draws)
    exploration = EpsilonZGreedy(epsilon=ConstantSchedule(value=0.3))
    changes = {**LEARNS, "exploration": exploration, "recurrence": recurrence}
    params = parameters(memory=memory, **changes)

    def build_manager(seed):
        return manager(params, LOCKS, num_envs=2, seed=seed, training=EnvironmentSteps(440))

    assert_resumes(build_manager, tmp_path, after(251), after(301))
