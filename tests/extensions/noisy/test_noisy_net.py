"""NoisyNet: its layers, its rows, its gradient steps, and runs that resume."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from torch import nn

import coach_rl as rl
from coach_rl.agents.dqn_agent import DQNLearner
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import SpaceError
from coach_rl.extensions.noisy import NoisyLinear
from coach_rl.extensions.noisy.noisy_layers import NOISE
from coach_rl.extensions.noisy.noisy_net import NoisyPolicy
from coach_rl.extensions.update_modes.recorded_steps import compiler_present
from tests.agents import small_dqns
from tests.agents.decisions import context, request
from tests.agents.small_dqns import HEADS, batches
from tests.builders import created, flat
from tests.extensions.noisy.plain_noisy_dqn import PlainNoisyDQN

SEEN = spaces.Dict({"x": spaces.Box(-9, 9, (3,))})
ACTIONS = spaces.Discrete(3, start=5)
TRAIN = Clock(phase=Phase.TRAIN)
TEST = Clock(phase=Phase.TEST)
NETWORKS = ("plain", "dueling streams")
DUELING = small_dqns.NETWORKS["dueling streams"]
SETTINGS = [
    {"double": False, "huber": 1.0, "target_sync": rl.TargetSync(every=2)},
    {"double": True, "huber": 0.4, "target_sync": rl.TargetSync(rate=0.3)},
]


def parameters(head="mean", network=None, **changes):
    given = {
        "exploration": rl.NoisyNet(initial_noise=1.5),
        "learning": rl.LearningParameters(batch=12, learning_starts=20, report_every=10),
        **changes,
    }
    return small_dqns.parameters(head, network, **given)


def build(params=None, actions=ACTIONS, *, seen=SEEN, num_envs=1):
    return (params or parameters()).build(context(seen, actions, num_envs=num_envs))


# Layers.


def test_network_begins_with_the_weights_of_a_plain_one_and_the_noise_of_the_paper():
    params = parameters("categorical", DUELING, exploration=rl.NoisyNet())
    noisy = build(params).learner.network.module
    plain = build(replace(params, exploration=rl.EpsilonGreedy())).learner.network.module
    means = {name: value for name, value in noisy.named_parameters() if "noise" not in name}
    for name, value in plain.named_parameters():
        assert torch.equal(means.pop(name), value)
    assert not means
    layers = [each for each in noisy.modules() if isinstance(each, NoisyLinear)]
    assert [each.inputs for each in layers] == [6, 5, 6, 5]
    for each in layers:
        bound = 1 / math.sqrt(each.inputs)
        scales = torch.cat([each.weight_noise.flatten(), each.bias_noise])
        assert torch.allclose(scales, torch.full_like(scales, 0.5 * bound))
    last = torch.cat([layers[1].weight.flatten(), layers[1].bias])
    assert 0.8 / math.sqrt(5) < float(last.abs().max()) <= 1 / math.sqrt(5)


# Gradient steps.


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("number", range(len(SETTINGS)))
@pytest.mark.parametrize("network", NETWORKS)
@pytest.mark.parametrize("head", HEADS)
@pytest.mark.parametrize("masked", [False, True])
def test_gradient_steps_equal_those_of_a_plain_program(head, network, number, masked):
    params = parameters(head, small_dqns.NETWORKS[network], algorithm=SETTINGS[number])
    masks = {"action_mask": spaces.MultiBinary(3)} if masked else {}
    agent = build(params, seen={**SEEN.spaces, **masks})
    plain = PlainNoisyDQN(params, agent)
    wrapped = agent.learner.network
    start = wrapped.online.clone()
    for batch in batches(4, ACTIONS, seed=number, masked=masked):
        expected = plain.step(batch)
        found = agent.learn_from_batch(batch)["td_error"]
        assert found.tolist() == pytest.approx(expected, rel=2e-4, abs=5e-5)
        for weights, own in ((wrapped.online, plain.online), (wrapped.target, plain.target)):
            for name, value in wrapped.named(weights).items():
                torch.testing.assert_close(
                    value.double(), own.named[name].detach(), rtol=0, atol=5e-5
                )
    moved = wrapped.named((wrapped.online - start).abs())
    assert min(float(each.max()) for each in moved.values()) > 0.01


@pytest.mark.parametrize("head", HEADS)
def test_branches_without_scales_learn_as_those_without_noise(head):
    actions = spaces.MultiDiscrete([2, 3])
    params = parameters(head, DUELING, exploration=rl.NoisyNet(initial_noise=0.0))
    noisy = build(params, actions)
    plain = build(replace(params, exploration=rl.EpsilonGreedy()), actions)
    (batch,) = batches(1, actions)
    found = noisy.learn_from_batch(batch)["td_error"]
    assert torch.allclose(found, plain.learn_from_batch(batch)["td_error"], atol=1e-6)
    wrapped = plain.learner.network
    learned = noisy.learner.network.named(noisy.learner.network.online)
    for name, value in wrapped.named(wrapped.online).items():
        assert torch.allclose(learned[name], value, atol=1e-6)
    assert learned["actions.0.weight_noise"].abs().max() > 0.01


def test_branches_learn_with_noise_of_their_own():
    actions = spaces.MultiDiscrete([2, 3])
    agents = [build(parameters(), actions) for _ in range(2)]
    agents[1].noise_rng.manual_seed(7)
    (batch,) = batches(1, actions)
    errors = [agent.learn_from_batch(batch)["td_error"] for agent in agents]
    assert not torch.allclose(*errors)


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")  # inductor's own
@pytest.mark.timeout(240)
@pytest.mark.skipif(not compiler_present(), reason="torch.compile needs a C++ compiler")
def test_compiled_steps_equal_eager_ones_to_rounding(compiler):
    def trained(mode):
        agent = build(parameters("categorical", DUELING, update_mode=mode))
        for batch in batches(6, ACTIONS):
            errors = agent.learn_from_batch(batch)["td_error"]
        return agent.learner.network.online, errors

    for found, expected in zip(trained("compiled"), trained("eager"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.gpu
def test_captured_steps_equal_eager_ones_on_the_cpu():
    def trained(mode, device):
        params = parameters("categorical", DUELING, update_mode=mode)
        given = replace(context(SEEN, ACTIONS), runtime=rl.Runtime(device=device, seed=0))
        agent = params.build(given)
        rows = agent.new_rows(2, 0)
        for batch in batches(6, ACTIONS):
            moved = batch._replace(
                **{
                    name: {key: each.to(device) for key, each in value.items()}
                    if isinstance(value, dict)
                    else value.to(device)
                    for name, value in batch._asdict().items()
                    if isinstance(value, dict | torch.Tensor)
                }
            )
            errors = agent.learn_from_batch(moved)["td_error"]
        agent.act(rows, request({"x": np.ones((2, 3), np.float32)}), TRAIN)
        assert agent.learner.engine.mode == mode
        return agent.learner.network.online.cpu(), errors.cpu()

    for found, expected in zip(trained("captured", "cuda"), trained("eager", "cpu"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-3, atol=1e-3)


# Acting.


def acted(agent, state, seen, clock=TRAIN, **more):
    """Values by which rows chose."""
    outputs = agent.learner.acting.outputs
    found = []

    def noted(observation):
        found.append(outputs(observation))
        return found[-1].copy()

    agent.learner.acting.outputs = noted
    action = agent.act(state, request({"x": seen}, **more), clock)
    agent.learner.acting.outputs = outputs
    return found[-1], action


def test_rows_have_noise_of_their_own_at_each_decision():
    agent = build(num_envs=4)
    rows = agent.new_rows(4, 0)
    seen = np.ones((4, 3), np.float32)
    first, action = acted(agent, rows, seen)
    second, _ = acted(agent, rows, seen)
    assert np.ptp(first, axis=0).min() > 0.01
    assert np.abs(first - second).max() > 0.01
    assert action.tolist() == (5 + first.argmax(axis=1)).tolist()
    assert agent.explores


def test_evaluations_and_greedy_rows_act_with_mean_weights_and_draw_nothing():
    agent = build(num_envs=3)
    rows = agent.new_rows(3, 0)
    seen = np.random.default_rng(0).normal(size=(3, 3)).astype(np.float32)
    module = agent.learner.network.module
    means = module.returns.mean(module({"x": torch.from_numpy(seen)})).numpy()
    for _ in range(2):
        found, action = acted(agent, rows, seen, TEST)
        np.testing.assert_allclose(found, means, atol=1e-6)
        assert action.tolist() == (5 + means.argmax(axis=1)).tolist()
    assert agent.policy_actions({"x": seen}).tolist() == action.tolist()
    mixed, _ = acted(agent, rows, seen, greedy=np.array([True, False, True]))
    np.testing.assert_allclose(mixed[[0, 2]], means[[0, 2]], atol=1e-6)
    fresh = agent.new_rows(3, 0)
    only, _ = acted(agent, fresh, seen[1:2], rows=np.array([1]))
    np.testing.assert_allclose(only[0], mixed[1], atol=1e-6)  # its first draw


def test_policy_chooses_by_values_with_noise():
    always = rl.EpsilonGreedy(epsilon=rl.ConstantSchedule(value=1.0))
    agent = build(parameters(exploration=rl.NoisyNet(policy=always)), num_envs=2)
    rows = agent.new_rows(2, 0)
    seen = np.ones((2, 3), np.float32)
    actions = {int(a) for _ in range(40) for a in acted(agent, rows, seen)[1]}
    assert actions == {5, 6, 7}
    assert {"exploration/epsilon", "exploration/network_noise"} <= agent.metrics(TRAIN).keys()


def test_metric_is_the_mean_scale():
    agent = build(parameters(exploration=rl.NoisyNet(initial_noise=0.7)))
    assert agent.metrics(TRAIN)["exploration/network_noise"] == pytest.approx(0.7, rel=1e-5)


# Refusals.


class Table(nn.Module):
    """A user's network that gives the values itself."""

    def __init__(self, space):
        super().__init__()
        self.values = nn.Linear(3, 3)

    def forward(self, observation):
        return self.values(observation["x"])


class Dial(spaces.Discrete):
    """A kind of space with a learner of its own."""


class DialLearner(DQNLearner):
    """A learner with a network of its own."""

    make_network = Table


class DialLearnerOfUsual(DQNLearner):
    """A learner with DQN's network."""


def with_dials(monkeypatch, learner):
    """Let a learner be DQN's variant for dials."""
    table = {f"{__name__}:Dial": f"{__name__}:{learner.__name__}"}
    monkeypatch.setattr("coach_rl.core.variants.variant_tables", [lambda _: table])


def test_noise_joins_a_variant_with_the_usual_network(monkeypatch):
    with_dials(monkeypatch, DialLearnerOfUsual)
    learner = build(actions=Dial(3)).learner
    assert isinstance(learner, DialLearnerOfUsual)
    assert isinstance(learner.acting, NoisyPolicy)


def test_noise_is_refused_where_it_cannot_be(monkeypatch):
    with monkeypatch.context() as patch:
        with_dials(patch, DialLearner)
        with pytest.raises(rl.ConfigurationError, match="leave out NoisyNet"):
            build(actions=Dial(3))
    box = spaces.Box(-1, 1, (2,), np.float32)
    with pytest.raises(SpaceError, match="NoisyNet explores by the action values of a DQN"):
        rl.DDPGAgentParameters(exploration=rl.NoisyNet()).build(context(SEEN, box))
    with pytest.raises(SpaceError, match="observes a 'network_noise', the name of its network's"):
        build(seen={NOISE: SEEN["x"]})
    own = rl.ModuleParameters(module=f"{__name__}:Table", last_layer=False)
    params = replace(parameters(), network=rl.QNetworkParameters(torso=own))
    with pytest.raises(rl.ConfigurationError, match="no layer of ours"):
        build(params)


# Runs.


def manager(params, seed=0, *, steps=240, num_envs=2):
    schedule = {"heatup": 20, "training": steps, "evaluation_interval": 80}
    chain = rl.ChainParameters(length=4, observation="one_hot")
    return created(
        flat(params, chain, num_envs=num_envs, progress_interval=1_000, **schedule), seed
    )


RAINBOW = {
    "algorithm": {"double": True, "target_sync": rl.TargetSync(every=7)},
    "memory": rl.ReplayMemoryParameters(
        capacity=300, n_step=3, prioritised=rl.PrioritisedParameters(alpha=0.5)
    ),
}
RUNS = {
    "rainbow": parameters("categorical", DUELING, **RAINBOW),
    "recurrent": parameters(
        recurrence=rl.GRU(size=4),
        memory=rl.ReplayMemoryParameters(capacity=300, draws=rl.SequenceParameters(length=4)),
    ),
}


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("name", RUNS)
def test_a_chain_is_learned_without_random_actions(name):
    params = replace(
        RUNS[name],
        exploration=rl.NoisyNet(),
        learning=rl.LearningParameters(batch=32, learning_starts=50, updates_per_step=0.5),
        algorithm=rl.DQNAlgorithmParameters(discount=0.9, target_sync=rl.TargetSync(every=20)),
    )
    with manager(params, steps=2_000, num_envs=4) as made:
        records = [record for record in made.improve() if record.kind == "evaluation"]
    last = records[-1].scalars
    assert last["evaluation/reward_mean"] == max(
        each.scalars["evaluation/reward_mean"] for each in records
    )
    assert last["evaluation/reward_mean"] > 0
