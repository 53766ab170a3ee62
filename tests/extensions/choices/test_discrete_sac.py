"""SAC in discrete spaces: losses and gradients against a plain program, decisions, and learning."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.architectures.continuous_control import Actor
from coach_rl.architectures.gradient_step import eager_gradient
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import ALLOWED, HIDDEN_STATE
from coach_rl.extensions.recurrent_layers.stage import HiddenStates
from tests.agents.decisions import context, outcome, request
from tests.agents.plain_learners import SEEN, TEST, TRAIN, parameters, run
from tests.agents.small_dqns import batches, masked_decisions, masks_of
from tests.extensions.choices.test_branching_dqn import LOCKS, SIZES
from tests.refusals import check_refused

SPACES = {
    "discrete": (spaces.Discrete(3, start=5), (3,), (5,)),
    "multidiscrete": (spaces.MultiDiscrete(SIZES, start=[5, 0, -1]), SIZES, (5, 0, -1)),
}


MOST = sum(map(math.log, SIZES))
"""Highest entropy of the several choices."""


def build(kind, *, masked=False, num_envs=1, **changes):
    space, sizes, _ = SPACES[kind]
    shown = {"action_mask": spaces.MultiBinary(sum(sizes))} if masked else {}
    return parameters("sac", **changes).build(
        context({**SEEN.spaces, **shown}, space, num_envs=num_envs)
    )


class PlainDiscreteSAC:
    """Christodoulou 2019, one sample after the other, one choice after the other, in doubles."""

    def __init__(self, learner, sizes, algorithm):
        self.sizes, self.algorithm = sizes, algorithm
        self.actor, self.critics, self.target, self.log_alpha = (
            flat.clone().requires_grad_()
            for flat in (
                learner.actor.online,
                learner.critics.online,
                learner.critics.target,
                learner.temperature.online,
            )
        )
        self.named = {"actor": learner.actor.named, "critics": learner.critics.named}

    def logits(self, observation):
        return self.dense(self.named["actor"](self.actor), observation["x"])

    def values(self, flat, observation):
        """[M] of each critic."""
        named = self.named["critics"](flat)
        weights = {name: values for name, values in named.items() if "weight" in name}
        found = []
        for member in (0, 1):
            hidden = observation["x"]
            for number, (name, weight) in enumerate(weights.items()):
                bias = named[name.replace("weight", "bias")][member].reshape(-1)
                hidden = hidden @ weight[member] + bias
                hidden = hidden.clamp(min=0) if number < len(weights) - 1 else hidden
            found.append(hidden)
        return found

    @staticmethod
    def dense(named, hidden):
        weights = [name for name in named if "weight" in name]
        for name in weights:
            hidden = named[name] @ hidden + named[name.replace("weight", "bias")]
            hidden = hidden.clamp(min=0) if name != weights[-1] else hidden
        return hidden

    def choices(self, observation):
        """Of each choice: allowed columns, and their probabilities."""
        logits, begin, found = self.logits(observation), 0, []
        for size in self.sizes:
            columns = list(range(begin, begin + size))
            if ALLOWED in observation:
                columns = [each for each in columns if observation[ALLOWED][each]]
            found.append((columns, torch.softmax(logits[columns], dim=0)))
            begin += size
        return found

    def entropy(self, observation):
        each = [-(prob * prob.log()).sum() for _, prob in self.choices(observation)]
        return sum(each)

    def target_entropy(self, observation):
        if self.algorithm.get("target_entropy") is not None:
            return self.algorithm["target_entropy"]
        counts = [len(columns) for columns, _ in self.choices(observation)]
        return self.algorithm.get("target_entropy_scale", 0.98) * sum(map(math.log, counts))

    def critic_loss(self, sample, start):
        with torch.no_grad():
            after = sample["next"]
            lower = torch.minimum(*self.values(self.target, after))
            expected = [(prob * lower[columns]).sum() for columns, prob in self.choices(after)]
            soft = sum(expected) / len(expected) + self.log_alpha.exp() * self.entropy(after)
            target = sample["reward"] + sample["discount"] * soft
        losses, errors, begins = [], [], np.cumsum((0, *self.sizes[:-1]))
        for values in self.values(self.critics, sample["now"]):
            for begin, first, action in zip(begins, start, sample["action"], strict=True):
                error = values[begin + int(action) - first] - target
                bound = self.algorithm.get("huber")
                linear = bound is not None and abs(error.item()) > bound
                loss = bound * (error.abs() - bound / 2) if linear else error**2 / 2
                losses.append(loss / len(self.sizes))
                errors.append(abs(error.item()) / 2)
        return sample["weight"] * sum(losses), sum(errors)

    def actor_loss(self, sample):
        lower = torch.minimum(*self.values(self.critics, sample["now"])).detach()
        alpha = self.log_alpha.exp().detach()
        return sum(
            (prob * (alpha * prob.log() - lower[columns])).sum()
            for columns, prob in self.choices(sample["now"])
        )

    def temperature_loss(self, sample):
        excess = self.target_entropy(sample["now"]) - self.entropy(sample["now"]).detach()
        return -self.log_alpha * excess


def samples_of(batch):
    for row in range(len(batch.reward)):
        yield {
            "now": {key: values[row] for key, values in batch.observation.items()},
            "next": {key: values[row] for key, values in batch.next_observation.items()},
            "action": np.atleast_1d(batch.action[row].numpy()),
            "reward": batch.reward[row],
            "discount": batch.discount[row],
            "weight": batch.weight[row],
        }


@pytest.mark.usefixtures("in_doubles")
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(
    "algorithm",
    [{}, {"huber": 0.7, "target_entropy_scale": 0.5}, {"target_entropy": 0.9}],
    ids=lambda value: ", ".join(value) or "plain",
)
@pytest.mark.parametrize("kind", SPACES)
def test_losses_and_gradients_equal_those_of_a_plain_program(kind, algorithm, masked):
    space, sizes, start = SPACES[kind]
    algorithm = {**algorithm, "initial_temperature": 0.3}
    agent = build(kind, masked=masked, algorithm=algorithm)
    learner, rng = agent.learner, torch.Generator().manual_seed(1)
    for network in learner.networks.values():
        network.online = network.online.double()
    learner.critics._target = learner.critics.online + 0.1 * torch.randn(
        learner.critics.size, generator=rng
    )
    plain = PlainDiscreteSAC(learner, sizes, algorithm)
    (batch,) = batches(1, space, seed=3, masked=masked, dtype=np.float64)
    samples = list(samples_of(batch))
    count = len(samples)

    pairs = [plain.critic_loss(each, start) for each in samples]
    expected = sum(loss for loss, _ in pairs) / count
    metrics = assert_same(learner.critic_loss, learner.critics, batch, {}, expected, plain.critics)
    errors = torch.tensor([error for _, error in pairs])
    torch.testing.assert_close(metrics["td_error"], errors, rtol=1e-10, atol=1e-10)

    expected = sum(map(plain.actor_loss, samples)) / count
    metrics = assert_same(learner.actor_loss, learner.actor, batch, {}, expected, plain.actor)
    entropies = torch.stack([plain.entropy(each["now"]).detach() for each in samples])
    torch.testing.assert_close(metrics["log_prob"], -entropies, rtol=1e-10, atol=1e-10)

    scalars = {"log_prob": metrics["log_prob"]}
    expected = sum(map(plain.temperature_loss, samples)).sum() / count
    assert_same(
        learner.temperature_loss, learner.temperature, batch, scalars, expected, plain.log_alpha
    )


def assert_same(loss, network, batch, scalars, expected, flat):
    """Compare a loss and its gradient with those of the plain program; returns the metrics."""
    gradient, value, metrics = eager_gradient(loss, network.online, batch, scalars)
    (wanted,) = torch.autograd.grad(expected, flat)
    torch.testing.assert_close(
        value, expected.detach().reshape(value.shape), rtol=1e-10, atol=1e-10
    )
    torch.testing.assert_close(gradient, wanted, rtol=1e-10, atol=1e-10)
    assert gradient.abs().max() > 1e-4
    return metrics


@pytest.mark.parametrize("kind", SPACES)
def test_actions_follow_the_policy_and_its_masks(kind):
    _, sizes, start = SPACES[kind]
    agent = build(kind, masked=True, num_envs=4_000, memory={"capacity": 4_000})
    rng = np.random.default_rng(0)
    mask = np.tile(masks_of(sizes, 1, rng), (4_000, 1))
    seen = {"x": np.tile(rng.normal(size=(1, 3)).astype(np.float32), (4_000, 1))}
    seen["action_mask"] = mask.astype(np.int8)
    state = agent.new_rows(4_000, seed=0)
    drawn, best = (agent.act(state, request(seen), clock) for clock in (TRAIN, TEST))
    with torch.no_grad():
        logits = agent.learner.actor.module({"x": torch.from_numpy(seen["x"][:1])})[0].numpy()
    bounds = np.cumsum((0, *sizes))
    for number, (begin, end) in enumerate(pairwise(bounds)):
        own = np.where(mask[0, begin:end], logits[begin:end], -np.inf)
        expected = np.exp(own - own.max()) / np.exp(own - own.max()).sum()
        chosen = np.reshape(drawn, (4_000, -1))[:, number] - start[number]
        shares = np.bincount(chosen, minlength=end - begin) / 4_000
        np.testing.assert_allclose(shares, expected, atol=0.04)
        assert not shares[~mask[0, begin:end]].any()
        assert set(np.reshape(best, (4_000, -1))[:, number] - start[number]) == {own.argmax()}


@pytest.mark.parametrize(("kind", "most"), [("discrete", 1.1), ("multidiscrete", MOST)])
@pytest.mark.parametrize("target", [-1.0, 0.0, 9.0])
def test_target_entropy_that_no_policy_has_is_refused(kind, most, target):
    message = f"between 0 and {most:.3g} nats, got algorithm.target_entropy={target}; set"
    check_refused(
        lambda: build(kind, algorithm={"target_entropy": target}), ConfigurationError, message
    )


def test_choice_among_options_of_the_preset_has_a_target_that_it_can_reach():
    module = pytest.importorskip("coach_rl.presets.PointMaze_METRA")
    targets = []
    for method in ("metra", "diayn"):
        panel = module.Panel(task="goals", method=method, skills="run")
        top, _ = module.graph_manager(panel).parameters.levels
        targets.append(top.agent.algorithm.target_entropy)
    assert targets == [-1.0, None]


def test_random_masks_are_never_broken():
    agent = build("multidiscrete", masked=True, num_envs=50, learning={"batch": 8})

    def learn(step):
        if step % 10 == 9:
            agent.learn_from_batch(agent.memory.sample(16))

    masked_decisions(agent, 60, learn)
    assert torch.isfinite(agent.learner.actor.online).all()


def test_critic_values_are_those_of_the_actions():
    agent = build("multidiscrete", num_envs=5)
    rng = np.random.default_rng(0)
    seen = {"x": rng.normal(size=(5, 3)).astype(np.float32)}
    action = agent.action_space.start + rng.integers(SIZES, size=(5, 3))
    with torch.no_grad():
        both = agent.learner.critics.module({"x": torch.from_numpy(seen["x"])}).amin(dim=0).numpy()
    columns = action - agent.action_space.start + np.cumsum((0, *SIZES[:-1]))
    expected = np.take_along_axis(both, columns, axis=1).mean(axis=1)
    np.testing.assert_allclose(agent.learner.values(seen, action), expected, rtol=1e-5)


LEARNS = {
    "torso": rl.TorsoParameters(middleware=(64,), activation="relu"),
    "rate": 3e-3,
    "learning": {"batch": 64, "learning_starts": 200, "report_every": 100},
    "algorithm": {"discount": 0.5, "target_entropy_scale": 0.1, "initial_temperature": 0.2},
}


def test_it_learns_all_choices():
    params = parameters("sac", memory={"capacity": 2_000, "n_step": 2}, **LEARNS)
    _, records = run(params, LOCKS, steps=1_200, evaluation_interval=rl.EnvironmentSteps(1_200))
    evaluation = [each for each in records if each.kind == "evaluation"][-1]
    assert evaluation.scalars["evaluation/reward_mean"] > 7.0  # 8 at most, 2.9 by chance


def test_recurrent_policy_acts_as_it_learns():
    torso = rl.TorsoParameters(embedder=(6,), middleware=(8,), recurrence=rl.GRU(size=5))
    memory = {"draws": rl.SequenceParameters(length=4)}
    agent = build("discrete", torso=torso, num_envs=1, memory=memory)
    state, rng = agent.new_rows(1, seed=0), np.random.default_rng(1)
    places = rng.normal(size=(6, 1, 3)).astype(np.float32)
    found = []
    for step, place in enumerate(places):
        found.append(agent.act(state, request({"x": place}, starts=step == 0), TEST)[0])
        if step < 5:
            agent.observe(state, outcome({"x": places[step + 1]}), TRAIN)
    hidden = torch.zeros(1, agent.stages.of(HiddenStates).state.size)
    whole = {"x": torch.from_numpy(places[:, 0]), HIDDEN_STATE: hidden}
    assert isinstance(agent.learner.actor.module, Actor)
    with torch.no_grad():
        logits = agent.learner.actor.module(whole)
    assert found == (logits.argmax(dim=1) + 5).tolist()
