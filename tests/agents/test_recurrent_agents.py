"""Recurrent agents: acting equals passing over the whole episode, learning equals single steps."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.records import HIDDEN_STATE
from coach_rl.extensions.recurrent_layers.stage import HiddenStates
from tests.agents.decisions import context, outcome, request

SEEN = spaces.Dict({"x": spaces.Box(-99, 99, (3,), np.float32)})
BOX, CHOICES = spaces.Box(-1, 1, (2,), np.float32), spaces.Discrete(3)
HEATUP, TRAIN, TEST = (Clock(phase=phase) for phase in (Phase.HEATUP, Phase.TRAIN, Phase.TEST))
LEARNING = rl.LearningParameters(batch=24, learning_starts=30, updates_per_step=0.1)
SEQUENCES = rl.SequenceParameters(length=6, burn_in=3)
MEMORY = rl.ReplayMemoryParameters(capacity=4_000, draws=SEQUENCES)


def parameters(kind, recurrence, *, memory=MEMORY, middleware=(6,), **settings):
    torso = rl.TorsoParameters(embedder=(5,), recurrence=recurrence, middleware=middleware)
    settings = {"update_mode": "eager", **settings}
    replay = {"memory": memory, "learning": LEARNING, **settings}
    match kind:
        case "PPO":
            algorithm = rl.PPOAlgorithmParameters(
                rollout=rl.EnvironmentSteps(60), minibatch=20, sequence=7, epochs=2
            )
            return rl.PPOAgentParameters(
                network=rl.ActorCriticParameters(torso=torso),
                **{"algorithm": algorithm, **settings},
            )
        case "DQN":
            algorithm = rl.DQNAlgorithmParameters(double=True, discount=0.9, huber=None)
            network = rl.QNetworkParameters(torso=torso)
            return rl.DQNAgentParameters(network=network, **{"algorithm": algorithm, **replay})
    kinds = {
        "DDPG": rl.DDPGAgentParameters,
        "TD3": rl.TD3AgentParameters,
        "SAC": rl.SACAgentParameters,
    }
    return kinds[kind](
        actor=rl.ActorParameters(torso=torso), critic=rl.CriticParameters(torso=torso), **replay
    )


def build(params, num_envs=3, observation=SEEN, device="cpu"):
    action = CHOICES if isinstance(params, rl.DQNAgentParameters) else BOX
    given = context(observation, action, num_envs=num_envs)
    return params.build(replace(given, runtime=rl.Runtime(device=device, seed=0)))


class Rows:
    """Rows that answer after any time, in sub-episodes and episodes that end by chance.

    `seen` holds what each row has seen since its hidden state was reset.
    """

    def __init__(self, agent, seed, num_envs=3):
        self.agent, self.rng = agent, np.random.default_rng(seed)
        self.state = agent.new_rows(num_envs, seed)
        self.now = self.rng.normal(size=(num_envs, 3)).astype(np.float32)
        self.starts, self.fresh = np.ones((2, num_envs), bool)
        self.waits = np.ones(num_envs, bool)
        self.seen = [[] for _ in range(num_envs)]

    def step(self, clock):
        """Rows that wait decide, then some are answered; the rows that decided."""
        rows = np.flatnonzero(self.waits)
        resets = (
            self.starts
            if self.agent.stages.of(HiddenStates).state.reset == "sub_episode"
            else self.fresh
        )
        for row in rows:
            if resets[row]:
                self.seen[row] = []
            self.seen[row].append(self.now[row].copy())
        if len(rows):
            flags = {"starts": self.starts[rows], "episode_start": self.fresh[rows]}
            shown = request({"x": self.now[rows]}, rows=rows, greedy=True, **flags)
            self.agent.act(self.state, shown, clock)
        self.waits[:] = False
        done = np.flatnonzero(self.rng.random(len(self.waits)) < 0.7)
        if len(done):
            self.answer(done, clock)
        return rows

    def answer(self, rows, clock):
        count, rng = len(rows), self.rng
        after = (0.5 * self.now[rows] + rng.normal(size=(count, 3))).astype(np.float32)
        terminated, truncated = rng.random((2, count)) < 0.08
        ends = {"terminated": terminated, "truncated": truncated}
        answer = outcome({"x": after}, rows=rows, reward=rng.normal(size=count), **ends)
        self.agent.observe(self.state, answer, clock)
        self.starts[rows] = terminated | truncated
        self.fresh[rows] = self.starts[rows] & (rng.random(count) < 0.5)
        after[self.fresh[rows]] = rng.normal(size=(int(self.fresh[rows].sum()), 3))
        self.now[rows] = after
        self.waits[rows] = True


def sequence_of(agent, seen):
    """One sequence from the start of an episode, as networks see it.

    Args:
        agent: Its agent.
        seen: Observations, by key where there are several.
    """
    state = torch.zeros(1, agent.stages.of(HiddenStates).state.size)
    keyed = [each if isinstance(each, dict) else {"x": each} for each in seen]
    shown = {key: np.stack([each[key] for each in keyed]) for key in keyed[0]}
    return {key: torch.from_numpy(each) for key, each in shown.items()} | {HIDDEN_STATE: state}


def greedy_action(agent, seen):
    """The greedy action after a whole episode, by one pass over it."""
    sequence = sequence_of(agent, seen)
    with torch.no_grad():
        if isinstance(agent.params, rl.PPOAgentParameters):
            return agent.model.policy(sequence)[-1].chunk(2)[0].numpy()
        learner = agent.learner
        if isinstance(agent.params, rl.DQNAgentParameters):
            return learner.network.module(sequence)[-1, :, 0].argmax().numpy()
        if isinstance(agent.params, rl.SACAgentParameters):
            return torch.tanh(learner.actor.module(sequence)[0][-1]).numpy()
        return learner.actor.module(sequence)[-1].numpy()


def final_state(agent, seen):
    """The hidden state after a whole episode, by one pass over it."""
    sequence = sequence_of(agent, seen)
    with torch.no_grad():
        if isinstance(agent.params, rl.PPOAgentParameters):
            return agent.model.states_after(sequence)[0].numpy()
        learner = agent.learner
        if isinstance(agent.params, rl.DQNAgentParameters):
            return learner.network.module.torso.advance(sequence)[1][0].numpy()
        own = learner.actor.module.torso.advance(sequence)[1]
        critics = learner.critics.module.embedder.advance(sequence)[1]
        return torch.cat([own, critics], dim=1)[0].numpy()


@pytest.mark.drawn(one_of=3, each="recurrence")
@pytest.mark.parametrize("algorithm", ["PPO", "DQN", "DDPG", "TD3", "SAC"])
@pytest.mark.parametrize(
    "recurrence",
    [
        rl.GRU(size=4),
        rl.LSTM(size=3, reset="episode"),
        rl.MinGRU(size=4, reset="episode"),
        rl.Attention(size=4, heads=2, window=5),
    ],
)
def test_acting_equals_passing_over_the_episode(algorithm, recurrence):
    agent = build(parameters(algorithm, recurrence))
    rows = Rows(agent, seed=1)
    compared = 0
    for clock in [HEATUP] * 15 + [TRAIN] * 60 + [TEST] * 15:
        if algorithm == "PPO" and len(agent.memory) > 50:
            agent.memory.clear()
        for row in rows.step(clock):
            seen = rows.seen[row]
            state = rows.state.choice[HIDDEN_STATE][row]
            np.testing.assert_allclose(state, final_state(agent, seen), atol=1e-5)
            if clock is not HEATUP:
                found = rows.state.choice["action"][row]
                np.testing.assert_allclose(found, greedy_action(agent, seen), atol=1e-5)
                compared += len(seen) > 3
    assert compared > 30


PPO = partial(parameters, "PPO")


@pytest.mark.parametrize(
    ("params", "message"),
    [
        (
            PPO(rl.GRU(), algorithm=rl.PPOAlgorithmParameters(recompute_advantages=True)),
            "recompute_advantages",
        ),
        (PPO(rl.GRU(), algorithm=rl.PPOAlgorithmParameters(minibatch=8)), "sequence=16.*holds 8"),
        (parameters("DQN", rl.GRU(), memory=rl.ReplayMemoryParameters()), "SequenceParameters"),
        (parameters("DQN", None), "TorsoParameters.recurrence"),
        (
            parameters("DQN", rl.GRU(), learning=rl.LearningParameters(batch=20)),
            "learning.batch=20.*use 24",
        ),
        (parameters("DDPG", rl.GRU(), parameter_noise=rl.ParameterNoise()), "parameter_noise"),
    ],
)
def test_recurrent_agents_refuse_what_they_cannot_learn_from(params, message):
    with pytest.raises(rl.ConfigurationError, match=message):
        build(params)


def test_recurrent_agent_refuses_an_observation_with_the_name_of_its_state():
    observation = spaces.Dict({**SEEN.spaces, HIDDEN_STATE: spaces.Box(-1, 1, (2,))})
    with pytest.raises(rl.ConfigurationError, match="give the observation key another name"):
        build(parameters("PPO", rl.GRU()), observation=observation)


@pytest.mark.parametrize(
    ("mode", "device"),
    [
        pytest.param("compiled", "cpu", marks=pytest.mark.slow),
        pytest.param("captured", "cuda", marks=pytest.mark.gpu),
    ],
)
@pytest.mark.parametrize("algorithm", ["PPO", "DQN", "SAC"])
@pytest.mark.parametrize(
    "recurrence", [rl.GRU(size=4), rl.LSTM(size=4), rl.MinGRU(size=4), rl.Attention(size=4)]
)
def test_update_modes_learn_the_same(algorithm, recurrence, mode, device):
    agents = [
        build(parameters(algorithm, recurrence, update_mode=each), device=device)
        for each in ("eager", mode)
    ]
    both = [Rows(agent, seed=4) for agent in agents]
    for _ in range(90):
        for rows, agent in zip(both, agents, strict=True):
            rows.step(TRAIN)
            agent.train(TRAIN)
    for name, part in agents[0].parts().items():
        if hasattr(part, "online"):
            # The bias of an attention's keys changes no weight of it, so its gradient is rounding.
            counts = {each: values.numel() for each, values in part.module.named_parameters()}
            matters = [
                torch.full((count,), "key.bias" not in each) for each, count in counts.items()
            ]
            mask = torch.cat(matters)
            other = agents[1].parts()[name]
            torch.testing.assert_close(part.online[mask], other.online[mask], rtol=1e-3, atol=1e-4)
