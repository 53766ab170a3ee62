import math

import numpy as np
import pytest
import torch
from decisions import context, outcome, request, transition
from gymnasium import spaces

from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.architectures.actor_critic import ActorCriticParameters
from coach_rl.architectures.gradient_step import AdamParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.core.clock import Clock, LinearSchedule, Phase
from coach_rl.core.errors import EnvironmentFault
from coach_rl.core.spaces import check_actions
from coach_rl.core.steps import EnvironmentSteps

SEEN = spaces.Dict({"x": spaces.Box(-99, 99, (1,))})
TRAIN, TEST = Clock(phase=Phase.TRAIN), Clock(phase=Phase.TEST)
ACTIONS = {
    "discrete": spaces.Discrete(3, start=5),
    "discrete below zero": spaces.Discrete(3, start=-2),
    "multidiscrete": spaces.MultiDiscrete([2, 3], start=[4, -1]),
    "box": spaces.Box(-1, 1, (2,)),
}


def build(
    *,
    action=ACTIONS["discrete"],
    seen=SEEN,
    num_envs=2,
    seed=0,
    rate=3e-3,
    gain=1.0,
    rollout=8,
    **algorithm,
):
    algorithm = {"epochs": 2, "minibatch": 4, **algorithm}
    params = PPOAgentParameters(
        algorithm=PPOAlgorithmParameters(rollout=EnvironmentSteps(rollout), **algorithm),
        network=ActorCriticParameters(torso=TorsoParameters(middleware=(16,)), policy_gain=gain),
        optimizer=AdamParameters(learning_rate=rate, epsilon=1e-5, max_gradient_norm=0.5),
        update_mode="eager",
    )
    return params.build(context(seen, action, num_envs=num_envs, seed=seed))


class Bandit:
    """One-step episodes: a row shows x = -1 or 1 and pays for the action."""

    def __init__(self, agent, pays, num_envs=2, seed=0):
        self.agent, self.pays, self.rng = agent, pays, np.random.default_rng(seed)
        self.rows = np.arange(num_envs)
        self.state = agent.new_rows(num_envs, seed)
        self.show()

    def show(self):
        self.x = self.rng.choice([-1.0, 1.0], (len(self.rows), 1)).astype(np.float32)

    def seen(self):
        return {"x": self.x}

    def act(self, clock=TRAIN):
        return self.agent.act(self.state, request(self.seen()), clock)

    def step(self, clock=TRAIN):
        self.agent.observe(self.state, self.outcome(self.act(clock)), clock)
        self.show()
        return self.agent.train(clock)

    def outcome(self, action):
        return outcome(self.seen(), reward=self.pays(self.x[:, 0], action), terminated=True)

    def round(self, clock=TRAIN):
        while (report := self.step(clock)) is None:
            pass
        return report


def flat_pay(x, action):
    """Pays by some fixed rule of context and action, for training that need not go anywhere."""
    return np.sin(3 * x + np.asarray(action, np.float64).reshape(len(x), -1).sum(axis=1))


def store(agent, rows, x, next_x, *, follows=True, **numbers):
    rows = np.atleast_1d(rows)

    def column(values, dtype):
        return np.broadcast_to(np.asarray(values, dtype), rows.shape).copy()

    before, after = ({"x": column(each, np.float32)[:, None]} for each in (x, next_x))
    agent.store(
        transition(
            before,
            column(5, np.int64),
            after,
            rows=rows,
            follows=column(follows, bool),
            extras={"log_prob": column(0.0, np.float32)},
            **numbers,
        )
    )


# The scale of returns.


def test_constant_returns_are_not_scaled():
    agent = build(scale_returns=True)
    agent.returns.update(np.array([100.1, 100.1, np.nextafter(np.float32(100.1), 0)]))
    assert agent.return_scale() == 1.0
    agent.returns.update(np.array([102.1]))
    # of 0, 0, 0, 2: 1 - 1 / 4
    assert agent.return_scale() == pytest.approx(math.sqrt(0.75), rel=1e-5)


# Rounds of training.


@pytest.mark.parametrize("num_envs", [2, 4])  # of which six come, or eight
def test_a_minibatch_is_never_larger_than_the_rollout_whatever_came(num_envs):
    agent, used = build(rollout=6, minibatch=100, epochs=2, num_envs=num_envs), []
    agent.learn_from_batch = lambda batch: used.append(len(set(batch.positions.tolist())))
    agent.engine.drain_metrics = lambda: {"approx_kl": 0.0}
    Bandit(agent, flat_pay, num_envs=num_envs).round()
    assert used == [6, 6]


def test_a_box_of_doubles_trains_after_random_actions_too():
    agent = build(action=spaces.Box(-1, 1, (2,), np.float64))
    bandit = Bandit(agent, flat_pay)
    bandit.step(Clock(phase=Phase.HEATUP))
    assert len(agent.memory) == 0
    scalars = bandit.round().metrics
    assert all(math.isfinite(value) for value in scalars.values())
    assert agent.network.online.dtype == torch.float32


def test_reports_hold_the_means_of_the_round():
    report = Bandit(build(), flat_pay).round()
    expected = (
        "policy_loss value_loss entropy approx_kl clip_fraction gradient_norm "
        "explained_variance training_steps learning_rate clip"
    )
    assert set(report.metrics) == {f"train/{name}" for name in expected.split()}
    assert all(isinstance(value, float) for value in report.metrics.values())


def test_schedules_are_read_where_the_rollout_began():
    agent = build(
        rate=0.01,
        clip=0.4,
        learning_rate_schedule=LinearSchedule(start=1, end=0, over=EnvironmentSteps(200)),
        clip_schedule=LinearSchedule(start=1.0, end=0.5),
    )
    bandit, seen = Bandit(agent, flat_pay), []
    for began in (0, 50, 50, 150):  # and eight steps later the rollout is full
        scalars = bandit.round(
            Clock(environment_steps=began + 8, planned=EnvironmentSteps(100))
        ).metrics
        used = [float(agent.engine.scalars[name]) for name in ("learning_rate", "clip")]
        assert used == pytest.approx([scalars["train/learning_rate"], scalars["train/clip"]])
        seen.append(used)
    expected = [[0.01, 0.4], [0.0075, 0.3], [0.0075, 0.3], [0.0025, 0.2]]
    assert seen == [pytest.approx(pair) for pair in expected]


def test_schedules_count_the_environment_steps_of_decisions_that_last():
    agent = build(rate=0.01, learning_rate_schedule=LinearSchedule(start=1.0, end=0.0))
    for x in range(4):
        store(agent, [0, 1], x=[x, x], next_x=[x + 1, x + 1], duration=5)
    report = agent.train(Clock(environment_steps=100, planned=EnvironmentSteps(100)))
    assert report.metrics["train/learning_rate"] == pytest.approx(0.01 * 40 / 100)


# Acting.


def test_only_the_tested_rows_are_silent():
    def act(quiet):
        agent = build(action=ACTIONS["box"], num_envs=3)
        seen = request({"x": np.full((3, 1), 0.5, np.float32)}, greedy=quiet)
        return agent.act(agent.new_rows(3, seed=1), seen, TRAIN)

    loud, mixed, silent = act([False] * 3), act([False, True, False]), act([True] * 3)
    np.testing.assert_array_equal(mixed[[0, 2]], loud[[0, 2]])
    np.testing.assert_array_equal(mixed[1], silent[1])
    np.testing.assert_array_equal(silent[0], silent[1])
    assert not np.allclose(loud[1], silent[1])


def test_images_are_acted_on_in_torch():
    params = PPOAgentParameters(
        network=ActorCriticParameters(torso=TorsoParameters(convolutions="shallow")),
        update_mode="eager",
    )
    seen = spaces.Dict({"image": spaces.Box(0, 255, (5, 5, 1), np.uint8)})
    agent = params.build(context(seen, spaces.Discrete(3)))
    shown = {"image": np.zeros((2, 5, 5, 1), np.uint8)}
    action = agent.act(agent.new_rows(2, seed=0), request(shown), TRAIN)
    check_actions(spaces.Discrete(3), action)


class Shown(Bandit):
    """A bandit that shows samples of the agent's observation space."""

    def seen(self):
        space = self.agent.observation_space
        space.seed(int(self.rng.integers(2**31)))
        drawn = [space.sample() for _ in self.rows]
        return {key: np.stack([each[key] for each in drawn]) for key in space.spaces}


@pytest.mark.parametrize(
    ("space", "wrong"),
    [
        (spaces.Discrete(4), 4),
        (spaces.Discrete(4, start=5), 0),
        (spaces.MultiDiscrete([3, 4], start=[1, 7]), [1, 11]),
    ],
    ids=str,
)
def test_observation_after_a_decision_outside_its_discrete_space_is_refused(space, wrong):
    agent = build(seen=spaces.Dict({"x": space}))
    bandit = Shown(agent, flat_pay)
    show, action = bandit.seen, bandit.act()
    bandit.seen = lambda: {"x": np.stack((show()["x"][0], np.asarray(wrong)))}
    with pytest.raises(EnvironmentFault):
        agent.observe(bandit.state, bandit.outcome(action), TRAIN)


# Learning.


def right_choice(x, action):
    """Pays 1 for action 5 at x = -1 and for action 7 at x = 1."""
    return (action == 6 + x).astype(np.float64)


def both_right(x, action):
    """Pays half for each right choice: (4, 1) at x = -1 and (5, -1) at x = 1."""
    return 0.5 * (action[:, 0] == (9 + x) / 2) + 0.5 * (action[:, 1] == -x)


def near_point(x, action):
    """Costs the squared distance from (x / 2, -x / 2)."""
    return -((action - np.stack([x / 2, -x / 2], axis=1)) ** 2).sum(axis=1)


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    ("kind", "pays", "good", "algorithm"),
    [
        ("discrete", right_choice, 0.99, {}),
        ("discrete", right_choice, 0.99, {"objective": "kl", "kl_target": 0.05}),
        ("discrete", right_choice, 0.99, {"scale_returns": True, "recompute_advantages": True}),
        ("multidiscrete", both_right, 0.99, {}),
        ("box", near_point, -0.05, {}),
    ],
    ids=["discrete", "kl penalty", "scaled returns", "multidiscrete", "box"],
)
def test_it_learns_a_bandit_with_two_contexts(kind, pays, good, algorithm):
    settings = {"rollout": 128, "minibatch": 32, "epochs": 4, "rate": 0.01, "gain": 0.01}
    agent = build(action=ACTIONS[kind], num_envs=16, **{**settings, **algorithm})
    bandit = Bandit(agent, pays, num_envs=16)
    untrained = pays(bandit.x[:, 0], bandit.act(TEST)).mean()
    assert untrained < good - 0.2
    for _ in range(15):
        bandit.round()
    assert pays(bandit.x[:, 0], bandit.act(TEST)).mean() >= good


def test_obstacle_to_learning_counts_decisions_after_heat_up():
    params = PPOAgentParameters(algorithm=PPOAlgorithmParameters(rollout=100))
    assert params.obstacle_to_learning(num_envs=1, steps=110, heatup=10) is None
    obstacle = params.obstacle_to_learning(num_envs=1, steps=110, heatup=11)
    assert "the run 99 after heat-up" in obstacle
