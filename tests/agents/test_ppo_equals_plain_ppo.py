"""Whole rounds of PPO against a slow version that shares no arithmetic with it."""

import numpy as np
import pytest
import torch
from decisions import context, outcome, request
from gymnasium import spaces
from plain_ppo import PlainPPO, RecurrentPPO

from coach_rl.agents.ppo_agent import PPOAgentParameters, PPOAlgorithmParameters
from coach_rl.architectures.actor_critic import ActorCriticParameters
from coach_rl.architectures.gradient_step import AdamParameters
from coach_rl.architectures.torso import TorsoParameters
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.recurrent_layers.attention import Attention
from coach_rl.extensions.recurrent_layers.gated_recurrence import GRU, LSTM
from coach_rl.extensions.recurrent_layers.linear_recurrence import MinGRU
from coach_rl.extensions.recurrent_layers.stage import HiddenStates

SEEN = spaces.Dict({"x": spaces.Box(-99, 99, (3,))})
ACTIONS = {
    "box": spaces.Box(-1, np.float32([0.5, 2.0])),
    "discrete": spaces.Discrete(3, start=5),
    "multidiscrete": spaces.MultiDiscrete([2, 3], start=[4, -1]),
    "mixed": spaces.Dict(
        {
            "kind": spaces.Discrete(3, start=4),
            "always": spaces.Box(-3, 1, (2,)),
            "bits": spaces.MultiBinary(2),
            "hop": spaces.Box(0, 9, (1, 2)),
            "run": spaces.Box(-1, 1, ()),
        }
    ),
}
ARGUMENTS = {"hop": ("kind", 4), "run": ("kind", 6)}
HEATUP, TRAIN = (Clock(phase=phase) for phase in (Phase.HEATUP, Phase.TRAIN))
ROLLOUT, ROUNDS = 21, 3
CHOICES = {"discrete": (3,), "multidiscrete": (2, 3), "mixed": (2, 2, 3)}
PARAMETER, LOG_PROB = 2e-5, 1e-4
"""Largest differences. Rounding to single precision makes a quarter of it in five rounds."""


def build(
    action, num_envs, *, masks=0, shared_torso, max_gradient_norm, recurrence=None, **algorithm
):
    params = PPOAgentParameters(
        algorithm=PPOAlgorithmParameters(
            rollout=EnvironmentSteps(ROLLOUT), epochs=3, minibatch=8, **algorithm
        ),
        network=ActorCriticParameters(
            torso=TorsoParameters(middleware=(8, 6), recurrence=recurrence),
            shared_torso=shared_torso,
            policy_gain=1.0,
            initial_log_std=-0.3,
        ),
        optimizer=AdamParameters(
            learning_rate=0.01, epsilon=1e-4, max_gradient_norm=max_gradient_norm
        ),
        update_mode="eager",
        arguments=ARGUMENTS if isinstance(action, spaces.Dict) else {},
    )
    shown = {**SEEN.spaces, "action_mask": spaces.MultiBinary(masks)} if masks else SEEN.spaces
    return params.build(context(spaces.Dict(shown), action, num_envs=num_envs))


class Rows:
    """Rows that take any time to answer, and whose episodes end in every way there is.

    An end may be that of a real episode, behind which the row starts elsewhere, or only the agent's
    (a horizon), behind which it continues there. With `choices` each observation ends in a mask,
    which allows one action or more of each choice.
    """

    def __init__(self, agent, num_envs, seed, choices=()):
        self.agent, self.rng = agent, np.random.default_rng(seed)
        self.choices = choices
        self.plain = (RecurrentPPO if agent.stages.of(HiddenStates) else PlainPPO)(agent)
        self.state = agent.new_rows(num_envs, seed)
        self.seen = [self.place() for _ in range(num_envs)]
        self.starts, self.fresh = np.ones(num_envs, bool), np.ones(num_envs, bool)
        self.open = {}

    def place(self):
        return np.concatenate([self.rng.normal(size=3), self.mask()]).astype(np.float32)

    def mask(self):
        masks = []
        for size in self.choices:
            mask = self.rng.random(size) < 0.4
            mask[self.rng.integers(size)] = True
            masks.append(mask)
        return np.concatenate(masks) if masks else np.zeros(0)

    def shown(self, places):
        seen = {"x": np.array(places)[:, :3]}
        return seen | ({"action_mask": np.array(places)[:, 3:]} if self.choices else {})

    def step(self, clock):
        """Some rows decide, some rows' decisions come to an end; what training said."""
        some = self.rng.random(len(self.seen))
        self.decide([row for row in range(len(some)) if row not in self.open], clock)
        done = [int(row) for row in self.rng.permutation(list(self.open)) if some[row] < 0.7]
        if done:
            self.finish(done, clock)
        return self.agent.train(clock)

    def decide(self, rows, clock):
        if not rows:
            return
        observation = np.array([self.seen[row] for row in rows])
        flags = {"starts": self.starts[rows], "episode_start": self.fresh[rows]}
        greedy = self.rng.random(len(rows)) < 0.2
        asked = request(self.shown(observation), rows=np.array(rows), greedy=greedy, **flags)
        sent = self.agent.act(self.state, asked, clock)
        for index, row in enumerate(rows):
            self.plain.begin(row, reset=bool(self.starts[row]))
            if clock.phase is Phase.HEATUP:
                self.open[row] = None
                self.plain.pass_over(row, observation[index])
                continue
            drawn = self.state.choice["action"][row]
            if isinstance(self.agent.action_space, spaces.Box):
                low, high = ACTIONS["box"].low, ACTIONS["box"].high
                expected = low + (np.clip(drawn, -1, 1) + 1) / 2 * (high - low)
                np.testing.assert_allclose(sent[index], expected, rtol=1e-6, atol=1e-6)
            elif isinstance(sent, dict):
                flat = [*sent["bits"][index], sent["kind"][index] - 4]  # in the order of the names
                np.testing.assert_array_equal(flat, drawn[:3])
                units = (np.clip(drawn[3:], -1, 1) + 1) / 2
                np.testing.assert_allclose(sent["always"][index], 4 * units[:2] - 3, atol=1e-5)
                np.testing.assert_allclose(sent["hop"][index][0], 9 * units[2:4], atol=1e-5)
                np.testing.assert_allclose(sent["run"][index], 2 * units[4] - 1, atol=1e-5)
            else:
                np.testing.assert_array_equal(sent[index], drawn)
                if self.choices:
                    chosen = np.atleast_1d(drawn - self.agent.action_space.start)
                    chosen = chosen + np.cumsum((0, *self.choices[:-1]))
                    assert observation[index][3:][chosen].all()
            self.open[row] = step = self.plain.decide(row, observation[index], drawn.copy())
            found = float(self.state.choice["log_prob"][row])
            assert abs(found - float(step.log_prob)) < LOG_PROB

    def finish(self, rows, clock):
        count, rng = len(rows), self.rng
        after = [self.place() for _ in rows]
        for place, row in zip(after, rows, strict=True):
            place[:3] = self.seen[row][:3] + 0.5 * place[:3]
        reward = rng.normal(size=count) + [place[0] for place in after]
        terminated, truncated = rng.random((2, count)) < 0.12
        duration = rng.integers(1, 4, count)
        ends = {"terminated": terminated, "truncated": truncated, "duration": duration}
        shown = outcome(self.shown(after), rows=np.array(rows), reward=reward, **ends)
        self.agent.observe(self.state, shown, clock)
        for index, row in enumerate(rows):
            if (step := self.open.pop(row)) is not None:
                step.reward, step.next_observation = reward[index], after[index]
                step.terminated = bool(terminated[index])
                step.truncated = bool(truncated[index])
                step.duration = int(duration[index])
                self.plain.rollout.append(step)
            self.starts[row] = terminated[index] or truncated[index]
            self.fresh[row] = self.starts[row] and rng.random() < 0.6
            self.seen[row] = self.place() if self.fresh[row] else after[index]


def assert_same_parameters(agent, plain):
    for name, value in agent.network.named(agent.network.online).items():
        torch.testing.assert_close(
            value.double(),
            plain.model.named[name].detach(),
            rtol=0,
            atol=PARAMETER,
            msg=lambda text, name=name: f"{name}: {text}",
        )


SETTINGS = [
    {},
    {"discount": 1.0, "gae_lambda": 1.0},
    {"gae_lambda": 0.0, "discount_by_duration": True},
    {"value_clip": 0.05, "entropy_coefficient": 0.05},
    {"recompute_advantages": True, "normalise_advantage": False},
    {"scale_returns": True, "value_coefficient": 1.3},
    {"scale_returns": True, "recompute_advantages": True, "value_clip": 0.1},
    {"stop_at_kl": 0.004, "discount_by_duration": True},
]
OBJECTIVES = [{"objective": "clip", "clip": 0.1}, {"objective": "kl", "kl_target": 0.004}]


RECURRENCES = [GRU(size=5), LSTM(size=4), MinGRU(size=6), Attention(size=4, heads=2, window=3)]


@pytest.mark.drawn(one_of=4, each="number")
@pytest.mark.parametrize("number", range(len(SETTINGS)))
@pytest.mark.parametrize("kind", ACTIONS)
def test_rounds_equal_those_of_plain_ppo(kind, number):
    assert_equal_rounds(kind, None, number, choices=())


def recurrent_cases():
    """Layer, settings and actions: each pair of two of them each time, all combinations if slow."""
    for place, kind in enumerate(ACTIONS):
        for layer, recurrence in enumerate(RECURRENCES):
            for number, setting in enumerate((0, 2, 3, 5)):
                is_quick = (place + layer + number) % len(RECURRENCES) == 0
                marks = () if is_quick else pytest.mark.slow
                yield pytest.param(kind, recurrence, setting, marks=marks)


@pytest.mark.drawn(one_of=4, each="recurrence")
@pytest.mark.parametrize(("kind", "recurrence", "number"), [*recurrent_cases()])
def test_recurrent_rounds_equal_those_of_plain_ppo(kind, recurrence, number):
    assert_equal_rounds(kind, recurrence, number, choices=())


def masked_cases():
    """Actions, layer and settings: each action with each setting each time, in one layer."""
    for place, kind in enumerate(CHOICES):
        for number, setting in enumerate(SETTINGS):
            is_recomputed = setting.get("recompute_advantages", False)
            for layer, recurrence in enumerate([None] if is_recomputed else [None, GRU(size=5)]):
                is_quick = is_recomputed or (place + layer + number) % 2 == 0
                marks = () if is_quick else pytest.mark.slow
                yield pytest.param(kind, recurrence, number, marks=marks)


@pytest.mark.drawn(one_of=3, each="number")
@pytest.mark.parametrize(("kind", "recurrence", "number"), [*masked_cases()])
def test_rounds_with_action_masks_equal_those_of_plain_ppo(kind, recurrence, number):
    """Recurrent networks don't recompute advantages."""
    assert_equal_rounds(kind, recurrence, number, choices=CHOICES[kind])


def assert_equal_rounds(kind, recurrence, number, choices):
    num_envs, objective = 1 + number % 5, OBJECTIVES[(number + len(kind)) % 2]
    agent = build(
        ACTIONS[kind],
        num_envs,
        shared_torso=number % 3 == 2,
        max_gradient_norm=None if number == 1 else 0.5,
        recurrence=recurrence,
        masks=sum(choices),
        **{
            "sequence": 1 + number,
            "discount": 0.9,
            "gae_lambda": 0.8,
            **objective,
            **SETTINGS[number],
        },
    )
    rows, start = Rows(agent, num_envs, seed=number, choices=choices), agent.network.online.clone()
    for _ in range(3):
        assert rows.step(HEATUP) is None
    for _ in range(ROUNDS):
        while (report := rows.step(TRAIN)) is None:
            assert len(rows.plain.rollout) < ROLLOUT
        for name, expected in rows.plain.learn().items():
            found = report.metrics[f"train/{name}"]
            assert found == pytest.approx(expected, rel=1e-3, abs=1e-5), name
        assert_same_parameters(agent, rows.plain)
    assert (agent.network.online - start).abs().max() > 0.05
