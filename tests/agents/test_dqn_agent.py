import numpy as np
import pytest
import torch
from decisions import context, request, transition
from gymnasium import spaces
from plain_learners import run as run_agent

import coach_rl as rl
from coach_rl.core.clock import Clock, Phase
from coach_rl.extensions.update_modes.recorded_steps import compiler_present
from coach_rl.memories import TransitionBatch

STATES = spaces.Dict({"x": spaces.Box(0, 1, (3,))})
BUTTONS = spaces.Discrete(2, start=5)
TRAIN, TEST = Clock(phase=Phase.TRAIN), Clock(phase=Phase.TEST)
LINEAR = rl.TorsoParameters(middleware=())  # of one-hot states: a table and a bias for each action
HEADS = {
    "mean": rl.MeanHead(),
    "quantiles": rl.QuantileHead(count=8),
    "categorical": rl.CategoricalHead(atoms=21, low=-0.5, high=2.5),
}


def parameters(
    *, head=None, torso=LINEAR, dueling=False, rate=0.05, learning=None, mode="eager", **changes
):
    names = ("discount", "double", "target_sync", "huber", "clip_targets")
    algorithm = {name: changes.pop(name) for name in names if name in changes}
    return rl.DQNAgentParameters(
        algorithm=rl.DQNAlgorithmParameters(
            **{"target_sync": rl.TargetSync(every=20), **algorithm}
        ),
        learning=rl.LearningParameters(
            **{"batch": 16, "learning_starts": 1, "report_every": 10, **(learning or {})}
        ),
        network=rl.QNetworkParameters(torso=torso, head=head or rl.MeanHead(), dueling=dueling),
        optimizer=rl.AdamParameters(learning_rate=rate),
        update_mode=mode,
        **{"memory": rl.ReplayMemoryParameters(capacity=1000), **changes},
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


ONLINE = [[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]
"""Values of actions 5 and 6 in each state; action 6 is the better one."""


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
        torso = rl.TorsoParameters(middleware=(8,))
        agent = build(head=HEADS[head], dueling=True, torso=torso, rate=0.01, mode=mode)
        for number in range(12):
            outputs = agent.learner.learn_from_batch(batch(reward=torch.tensor([1.0, number / 6])))
        return agent.learner.network.online, agent.learner.network.target, outputs["td_error"]

    for found, expected in zip(trained("compiled"), trained("eager"), strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


# What it learns.


def stored(agent, state, action, reward, next_state, **ends):
    before, after = ({"x": one_hot(each).numpy()} for each in (state, next_state))
    agent.store(transition(before, np.array([action]), after, reward=reward, **ends))


def run(environment, params, *, steps, **changes):
    """The agent and its records after so many steps, with an evaluation at the end."""
    interval = rl.EnvironmentSteps(steps)
    return run_agent(params, environment, steps=steps, evaluation_interval=interval, **changes)


def exploring(epsilon=1.0):
    return rl.EpsilonGreedy(epsilon=rl.ConstantSchedule(value=epsilon))


PRIORITIES = rl.ReplayMemoryParameters(capacity=1000, prioritised=rl.PrioritisedParameters())


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"dueling": True, "memory": PRIORITIES},
        {"head": HEADS["quantiles"], "huber": None, "rate": 0.02},
        {"head": HEADS["categorical"], "dueling": True},
        {"exploration": rl.Boltzmann(), "double": False},
    ],
    ids=["plain", "dueling, prioritised", "quantiles", "categorical", "boltzmann"],
)
def test_it_learns_what_each_button_is_worth(changes):
    params = parameters(
        **{"learning": {"updates_per_step": 0.25}, "exploration": exploring(), **changes}
    )
    agent, records = run(rl.OneStepParameters(size=4), params, steps=2400)
    found = agent.learner.acting.outputs({"observation": np.eye(4, dtype=np.float32)})
    np.testing.assert_allclose(found, np.eye(4), atol=0.1)
    (evaluation,) = (record for record in records if record.kind == "evaluation")
    assert evaluation.scalars["evaluation/reward_mean"] == 1.0


# When it learns, and what it tells.


def test_learning_begins_late_and_keeps_its_ratio():
    learning = {"updates_per_step": 0.25, "learning_starts": 40, "report_every": 5}
    agent, records = run(rl.OneStepParameters(size=3), parameters(learning=learning), steps=200)
    # The memory holds 40 after the fifth tick of 8, which earns nothing yet.
    assert agent.training_steps == (200 - 40) // 4
    expected = ["q_loss", "q_value", "gradient_norm", "learning_rate", "training_steps"]
    trains = [record for record in records if record.kind == "train"]
    assert trains
    for record in trains:
        assert {f"train/{name}" for name in expected} < set(record.scalars)
        assert {"exploration/epsilon", "memory/transitions"} < set(record.scalars)
        assert all(np.isfinite(value) for value in record.scalars.values())


# Acting.


def act(agent, states, clock):
    observation = {"x": one_hot(*states).numpy()}
    return agent.act(agent.new_rows(len(states), seed=0), request(observation), clock)


@pytest.mark.parametrize("dueling", [False, True])
@pytest.mark.parametrize("head", HEADS)
def test_acting_sees_the_values_that_are_learned(head, dueling):
    torso = rl.TorsoParameters(middleware=(8,))
    agent = build(head=HEADS[head], dueling=dueling, torso=torso)
    for _ in range(3):
        agent.learner.learn_from_batch(batch())
    module = agent.learner.network.module
    with torch.no_grad():
        expected = module.returns.mean(module({"x": one_hot(0, 1, 2)}))
    found = agent.learner.acting.outputs({"x": one_hot(0, 1, 2).numpy()})
    assert found.shape == (3, 2)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("exploration", [exploring(), rl.Boltzmann()])
def test_testing_is_greedy_and_training_explores(exploration):
    agent = build(num_envs=60, exploration=exploration)
    fill(agent, agent.learner.network.online, ONLINE)
    states = [0, 1, 2] * 20
    assert act(agent, states, TEST).tolist() == [6] * 60
    assert set(act(agent, states, TRAIN).tolist()) == {5, 6}


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


# Actions.
