from functools import partial

import numpy as np
import pytest
import torch
from decisions import context, request, transition
from gymnasium import spaces
from plain_learners import manager
from plain_learners import run as run_agent
from resuming import after, assert_resumes

from coach_rl import Boltzmann
from coach_rl.agents.dqn_agent import DQNAgentParameters, DQNAlgorithmParameters
from coach_rl.agents.off_policy_agent import LearningParameters
from coach_rl.architectures.gradient_step import AdamParameters, TargetSync
from coach_rl.architectures.q_network import MeanHead, QNetworkParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.core.clock import Clock, ConstantSchedule, LinearSchedule, Phase
from coach_rl.core.spaces import check_actions
from coach_rl.core.steps import EnvironmentEpisodes, EnvironmentSteps
from coach_rl.environments.toy import ChainParameters, OneStepParameters
from coach_rl.exploration_policies import EpsilonGreedy
from coach_rl.extensions.discrete_maps import BoxDiscretization
from coach_rl.extensions.distributional.heads import CategoricalHead, QuantileHead
from coach_rl.extensions.prioritised import PrioritisedParameters
from coach_rl.extensions.update_modes.recorded_steps import compiler_present
from coach_rl.filters import OutputFilter
from coach_rl.memories import ReplayMemoryParameters, TransitionBatch

STATES = spaces.Dict({"x": spaces.Box(0, 1, (3,))})
BUTTONS = spaces.Discrete(2, start=5)
TRAIN, TEST = Clock(phase=Phase.TRAIN), Clock(phase=Phase.TEST)
LINEAR = TorsoParameters(middleware=())  # of one-hot states: a table and a bias for each action
HEADS = {
    "mean": MeanHead(),
    "quantiles": QuantileHead(count=8),
    "categorical": CategoricalHead(atoms=21, low=-0.5, high=2.5),
}


def parameters(
    *, head=None, torso=LINEAR, dueling=False, rate=0.05, learning=None, mode="eager", **changes
):
    names = ("discount", "double", "target_sync", "huber", "clip_targets")
    algorithm = {name: changes.pop(name) for name in names if name in changes}
    return DQNAgentParameters(
        algorithm=DQNAlgorithmParameters(**{"target_sync": TargetSync(every=20), **algorithm}),
        learning=LearningParameters(
            **{"batch": 16, "learning_starts": 1, "report_every": 10, **(learning or {})}
        ),
        network=QNetworkParameters(torso=torso, head=head or MeanHead(), dueling=dueling),
        optimizer=AdamParameters(learning_rate=rate),
        update_mode=mode,
        **{"memory": ReplayMemoryParameters(capacity=1000), **changes},
    )


def build(*, action=BUTTONS, seen=STATES, num_envs=2, seed=0, **changes):
    return parameters(**changes).build(context(seen, action, num_envs=num_envs, seed=seed))


def fill(agent, flat, table):
    """Make action values those of a table, [n, 3]."""
    named = agent.learner.network.named(flat)
    named["actions.0.weight"].copy_(torch.tensor(table))
    named["actions.0.bias"].zero_()


def one_hot(*states):
    return torch.eye(3)[list(states)]


def batch(**changes):
    """From state 0 by action 6 to state 1, and from state 2 by action 5 to its end."""
    whole = TransitionBatch(
        observation={"x": one_hot(0, 2)},
        action=torch.tensor([6, 5]),
        reward=torch.tensor([1.0, -2.0]),
        next_observation={"x": one_hot(1, 1)},
        discount=torch.tensor([0.5, 0.0]),
        weight=torch.ones(2),
        position=torch.arange(2),
    )
    return whole._replace(**changes)


ONLINE = [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]  # action 6 is the better one in state 1
TARGET = [[0.0, 50.0, 0.0], [0.0, 20.0, 0.0]]  # action 5 is


# The loss, by hand.


@pytest.mark.parametrize(("double", "next_value"), [(True, 20.0), (False, 50.0)])
def test_the_online_network_chooses_and_the_target_network_judges(double, next_value):
    agent = build(double=double, huber=None)
    fill(agent, agent.learner.network.online, ONLINE)
    fill(agent, agent.learner.network.target, TARGET)
    loss, said = agent.learner.loss(agent.learner.network.online, batch(), {})
    # state 0, action 6 says 2; state 2, action 5 says 5, and nothing is bootstrapped
    errors = [2.0 - (1.0 + 0.5 * next_value), 5.0 - (-2.0)]
    assert said["td_error"].tolist() == errors
    assert float(loss) == pytest.approx(0.5 * (errors[0] ** 2 + errors[1] ** 2) / 2)
    assert float(said["q_value"]) == 3.5
    weight = torch.tensor([0.5, 0.0])
    weighted, _ = agent.learner.loss(agent.learner.network.online, batch(weight=weight), {})
    assert float(weighted) == pytest.approx(0.5 * 0.5 * errors[0] ** 2 / 2)


def test_targets_are_clipped_and_large_errors_count_linearly():
    agent = build(huber=1.0, clip_targets=(-1.5, 3.0))
    fill(agent, agent.learner.network.online, ONLINE)
    fill(agent, agent.learner.network.target, TARGET)
    loss, said = agent.learner.loss(agent.learner.network.online, batch(), {})
    # targets 11 and -2 become 3 and -1.5
    assert said["td_error"].tolist() == [-1.0, 6.5]
    assert float(loss) == pytest.approx((0.5 + 6.0) / 2)


@pytest.mark.parametrize("start", [-1, 0, 5])
def test_only_the_action_taken_learns_whatever_its_number(start):
    agent = build(action=spaces.Discrete(3, start=start))
    before = agent.learner.network.named(agent.learner.network.online)["actions.0.weight"].clone()
    taken = torch.tensor([start + 2, start])
    agent.learner.learn_from_batch(batch(action=taken, reward=torch.tensor([50.0, 50.0])))
    moved = agent.learner.network.named(agent.learner.network.online)["actions.0.weight"] - before
    assert (moved.abs() > 1e-3).tolist() == [
        [False, False, True],  # the first action in state 2
        [False, False, False],
        [True, False, False],  # the third in state 0
    ]


def test_actions_of_other_whole_numbers_are_as_good():
    wide, narrow = build(), build()
    wide.learner.learn_from_batch(batch())
    narrow.learner.learn_from_batch(batch(action=torch.tensor([6, 5], dtype=torch.int16)))
    assert torch.equal(wide.learner.network.online, narrow.learner.network.online)


@pytest.mark.filterwarnings("ignore:.torch.jit.script_method:DeprecationWarning")  # inductor's own
@pytest.mark.timeout(240)
@pytest.mark.skipif(not compiler_present(), reason="torch.compile needs a C++ compiler")
@pytest.mark.parametrize(
    "head",
    [
        "quantiles",
        pytest.param("mean", marks=pytest.mark.slow),
        pytest.param("categorical", marks=pytest.mark.slow),
    ],
)
def test_compiled_equals_eager_to_rounding(head, compiler):
    def trained(mode):
        torso = TorsoParameters(middleware=(8,))
        agent = build(head=HEADS[head], dueling=True, torso=torso, rate=0.01, mode=mode)
        for number in range(12):
            said = agent.learner.learn_from_batch(batch(reward=torch.tensor([1.0, number / 6])))
        return agent.learner.network.online, agent.learner.network.target, said["td_error"]

    for found, expected in zip(trained("compiled"), trained("eager"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


# What it learns.


def stored(agent, state, action, reward, next_state, **ends):
    before, after = ({"x": one_hot(each).numpy()} for each in (state, next_state))
    agent.store(transition(before, np.array([action]), after, reward=reward, **ends))


def values(agent, state):
    return agent.learner.acting.outputs({"x": one_hot(state).numpy()})[0].tolist()


@pytest.mark.parametrize("head", HEADS)
def test_a_truncation_bootstraps_and_a_termination_does_not(head):
    """A reward of 1 at every step in state 0, cut off; in state 1 it comes once."""
    agent = build(head=HEADS[head], discount=0.5, rate=0.02, target_sync=TargetSync(rate=0.1))
    for _ in range(10):
        for action in (5, 6):
            stored(agent, 0, action, 1.0, 0, truncated=True)
            stored(agent, 1, action, 1.0, 0, terminated=True)
    for _ in range(600):
        agent.learn_from_batch(agent.memory.sample(16))
    assert values(agent, 0) == pytest.approx([2.0, 2.0], abs=0.05)
    assert values(agent, 1) == pytest.approx([1.0, 1.0], abs=0.05)


def run(environment, params, *, steps, **changes):
    """The agent and its records after so many steps, with an evaluation at the end."""
    interval = EnvironmentSteps(steps)
    return run_agent(params, environment, steps=steps, evaluation_interval=interval, **changes)


def exploring(epsilon=1.0):
    return EpsilonGreedy(epsilon=ConstantSchedule(value=epsilon))


PRIORITIES = ReplayMemoryParameters(capacity=1000, prioritised=PrioritisedParameters())


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dueling": True, "memory": PRIORITIES},
        {"head": HEADS["quantiles"], "huber": None, "rate": 0.02},
        {"head": HEADS["categorical"], "dueling": True},
        {"exploration": Boltzmann(), "double": False},
    ],
    ids=["plain", "dueling, prioritised", "quantiles", "categorical", "boltzmann"],
)
def test_it_learns_what_each_button_is_worth(changes):
    params = parameters(
        **{"learning": {"updates_per_step": 0.25}, "exploration": exploring(), **changes}
    )
    agent, records = run(OneStepParameters(size=4), params, steps=2400)
    found = agent.learner.acting.outputs({"observation": np.eye(4, dtype=np.float32)})
    np.testing.assert_allclose(found, np.eye(4), atol=0.1)
    (evaluation,) = (record for record in records if record.kind == "evaluation")
    assert evaluation.scalars["evaluation/reward_mean"] == 1.0


def chain_values(length, discount):
    """Optimal values [length, 2] of going left and right, by value iteration."""
    found = np.zeros((length, 2))
    for _ in range(100):
        for state in range(length):
            for action in (0, 1):
                after = min(max(state + 2 * action - 1, 0), length - 1)
                reward = {0: 0.001, length - 1: 1.0}.get(after, 0.0)
                found[state, action] = reward + discount * found[after].max()
    return found


@pytest.mark.parametrize(
    "changes",
    [{}, {"dueling": True, "head": HEADS["quantiles"]}, {"head": HEADS["categorical"]}],
    ids=["plain", "dueling quantiles", "categorical"],
)
def test_it_learns_the_values_of_a_chain(changes):
    params = parameters(
        **{
            "discount": 0.5,
            "target_sync": TargetSync(rate=0.1),
            "learning": {"updates_per_step": 0.25, "batch": 32},
            "exploration": exploring(),
            "rate": 0.02,
            **changes,
        }
    )
    agent, _ = run(ChainParameters(length=4, observation="one_hot"), params, steps=3600)
    found = agent.learner.acting.outputs({"observation": np.eye(4, dtype=np.float32)})
    np.testing.assert_allclose(found, chain_values(4, 0.5), atol=0.1)


def test_several_steps_at_once_are_worth_the_same_on_the_greedy_path():
    """Where everything done is greedy, n-step returns are those of the policy itself."""
    params = parameters(
        discount=0.5,
        target_sync=TargetSync(rate=0.1),
        learning={"updates_per_step": 0.25, "batch": 32},
        exploration=exploring(0.0),
        memory=ReplayMemoryParameters(capacity=1000, n_step=3),
        rate=0.02,
    )
    agent = params.build(context(STATES, BUTTONS, num_envs=1))
    for _ in range(30):
        stored(agent, 0, 6, 1.0, 1)
        stored(agent, 1, 6, 0.0, 2)
        stored(agent, 2, 6, 4.0, 0, terminated=True)
    for _ in range(600):
        agent.learn_from_batch(agent.memory.sample(32))
    found = [values(agent, state)[1] for state in range(3)]
    # 1 + 0 / 2 + 4 / 4, 0 + 4 / 2, 4
    assert found == pytest.approx([2.0, 2.0, 4.0], abs=0.1)


# When it learns, and what it tells.


def test_learning_begins_late_and_keeps_its_ratio():
    learning = {"updates_per_step": 0.25, "learning_starts": 40, "report_every": 5}
    agent, records = run(OneStepParameters(size=3), parameters(learning=learning), steps=200)
    # The memory holds 40 after the fifth tick of 8, which earns nothing yet.
    assert agent.training_steps == (200 - 40) // 4
    expected = ["q_loss", "q_value", "gradient_norm", "learning_rate", "training_steps"]
    trains = [record for record in records if record.kind == "train"]
    assert trains
    for record in trains:
        assert {f"train/{name}" for name in expected} < set(record.scalars)
        assert {"exploration/epsilon", "memory/transitions"} < set(record.scalars)
        assert all(np.isfinite(value) for value in record.scalars.values())


def test_a_prioritised_memory_receives_errors():
    agent, told = build(memory=PRIORITIES), []
    fill(agent, agent.learner.network.online, ONLINE)
    stored(agent, 0, 6, 1.0, 0, terminated=True)
    stored(agent, 2, 5, 2.0, 0, terminated=True)
    agent.memory.note_errors = lambda positions, errors: told.append((positions, errors.clone()))
    agent.earned = 1
    assert agent.train(TRAIN).training_steps == 1
    ((positions, errors),) = told
    expected = {0: 2.0 - 1.0, 1: 5.0 - 2.0}
    assert len(errors) == 16
    for position, error in zip(positions.tolist(), errors.tolist(), strict=True):
        assert error == pytest.approx(expected[position])


def test_a_learning_rate_that_has_run_out_learns_nothing():
    agent = build(learning_rate_schedule=LinearSchedule(start=1, end=0, over=EnvironmentSteps(10)))
    stored(agent, 0, 6, 1.0, 1)
    before = agent.learner.network.online.clone()
    agent.earned = 3
    assert agent.train(Clock(environment_steps=10)).training_steps == 3
    assert torch.equal(agent.learner.network.online, before)


# Acting.


def act(agent, states, clock):
    observation = {"x": one_hot(*states).numpy()}
    return agent.act(agent.new_rows(len(states), seed=0), request(observation), clock)


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("head", HEADS)
def test_acting_sees_the_values_that_are_learned(head, dueling):
    torso = TorsoParameters(middleware=(8,))
    agent = build(head=HEADS[head], dueling=dueling, torso=torso)
    for _ in range(3):
        agent.learner.learn_from_batch(batch())
    module = agent.learner.network.module
    with torch.no_grad():
        expected = module.returns.mean(module({"x": one_hot(0, 1, 2)}))
    found = agent.learner.acting.outputs({"x": one_hot(0, 1, 2).numpy()})
    assert found.shape == (3, 2)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("exploration", [exploring(), Boltzmann()])
def test_testing_is_greedy_and_training_explores(exploration):
    agent = build(num_envs=60, exploration=exploration)
    fill(agent, agent.learner.network.online, ONLINE)
    states = [0, 1, 2] * 20
    assert act(agent, states, TEST).tolist() == [6] * 60
    assert set(act(agent, states, TRAIN).tolist()) == {5, 6}


@pytest.mark.parametrize("dueling", [False, True])
def test_images_are_acted_on_in_torch(dueling):
    seen = spaces.Dict({"image": spaces.Box(0, 255, (5, 5, 1), np.uint8)})
    torso = TorsoParameters(convolutions="shallow")
    agent = build(seen=seen, torso=torso, dueling=dueling)
    seen = {"image": np.zeros((2, 5, 5, 1), np.uint8)}
    action = agent.act(agent.new_rows(2, seed=0), request(seen, greedy=True), TRAIN)
    check_actions(BUTTONS, action)


def test_observations_are_normalised_alike_in_acting_and_learning():
    agent = build(normalise_observations=5.0)
    for state in (0, 0, 0, 1):
        stored(agent, state, 5, 0.0, 0)
    module = agent.learner.network.module
    with torch.no_grad():
        expected = module({"x": one_hot(0, 1, 2)}).squeeze(-1)
    found = agent.learner.acting.outputs({"x": one_hot(0, 1, 2).numpy()})
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)
    plain = build().learner.acting.outputs({"x": one_hot(0, 1, 2).numpy()})
    assert not np.allclose(found, plain)


# Saving.


EVERYTHING = {
    "double and prioritised": {"memory": PRIORITIES, "normalise_observations": 5.0},
    "dueling quantiles, three steps": {
        "head": HEADS["quantiles"],
        "dueling": True,
        "memory": ReplayMemoryParameters(capacity=200, n_step=3),
        "exploration": Boltzmann(),
    },
    "categorical": {"head": HEADS["categorical"], "target_sync": TargetSync(rate=0.1)},
}


@pytest.mark.parametrize("kind", EVERYTHING)
def test_dqn_saved_while_learning_resumes_bit_for_bit(kind, tmp_path):
    params = parameters(
        learning={"updates_per_step": 0.75, "learning_starts": 20},
        learning_rate_schedule=LinearSchedule(start=1.0, end=0.0),
        **EVERYTHING[kind],
    )
    build = partial(
        manager,
        params,
        ChainParameters(length=5, slip=0.1),
        num_envs=3,
        training=EnvironmentSteps(300),
        heatup=EnvironmentSteps(12),
        evaluation_interval=EnvironmentSteps(100),
        evaluation_episodes=EnvironmentEpisodes(2),
        progress_interval=EnvironmentSteps(50),
    )
    assert_resumes(build, tmp_path, after(150), kinds=("train", "episode"))


# Actions.


def test_a_box_cut_into_bins_is_as_good_as_buttons():
    bins = OutputFilter(action=(BoxDiscretization(num_bins=5),))
    agent = build(action=spaces.Box(-2, 2, (1,)), output_filter=bins)
    fill(agent, agent.learner.network.online, [[0.0] * 3] * 4 + [[1.0] * 3])
    assert act(agent, [0, 1], TEST).tolist() == [[2.0], [2.0]]
