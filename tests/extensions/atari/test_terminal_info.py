"""A lost life is terminal for what an agent learns; the episode, frames and noise continue."""

from dataclasses import replace

import gymnasium
import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError
from coach_rl.memories.batches import (
    NEXT_OBSERVATIONS,
    OBSERVATIONS,
    REWARDS,
    TERMINATED,
    TRUNCATED,
)
from coach_rl.sessions.session import run_experiment
from tests.builders import flat
from tests.small_runs import QUIET

HERE = "tests.extensions.atari.test_terminal_info"
LIFE = 5
"""Steps of a life."""
LIVES = 3
SHAPE = (4, 4)


class Lives(gymnasium.Env):
    """Pictures that count steps; three lives of five steps each, a reward of 2 a step."""

    observation_space = gymnasium.spaces.Box(0, 255, SHAPE, np.uint8)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.seen(), {}

    def step(self, action):
        self.time += 1
        is_over = self.time == LIFE * LIVES
        lost = self.time % LIFE == 0 and not is_over
        return self.seen(), 2.0, is_over, False, {"life_lost": lost}

    def seen(self):
        return np.full(SHAPE, 1 + self.time, np.uint8)


FILTER = rl.InputFilter(
    observation={"observation": (rl.ObservationStackingFilter(stack_size=3),)},
    reward=(rl.RewardClippingFilter(low=-1.0, high=1.0),),
)
TORSO = rl.TorsoParameters(
    convolutions="shallow", middleware=(8,), activation="relu", images="channels_last"
)


def experiment(agent, *, info="life_lost", steps=40):
    lives = rl.GymnasiumParameters(level=f"{HERE}:Lives")
    schedule = {"training": steps, "evaluation_interval": steps, "evaluation_episodes": 1}
    parts = (rl.TerminalInfo(info=info),)
    return rl.BasicRLGraphManager(flat(agent, lives, progress_interval=10, parts=parts, **schedule))


def dqn(recurrence=None):
    return rl.DQNAgentParameters(
        network=rl.QNetworkParameters(torso=replace(TORSO, recurrence=recurrence)),
        memory=rl.ReplayMemoryParameters(
            capacity=100,
            frame_stack=("observation",),
            draws=rl.SingleTransitions() if recurrence is None else rl.SequenceParameters(length=8),
        ),
        learning=rl.LearningParameters(batch=8, updates_per_step=0.2, learning_starts=20),
        input_filter=FILTER,
    )


def ppo(recurrence=None):
    return rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(
            rollout=rl.EnvironmentSteps(38), epochs=1, minibatch=16, sequence=8
        ),
        network=rl.ActorCriticParameters(torso=replace(TORSO, recurrence=recurrence)),
        input_filter=FILTER,
    )


def memory_of(manager):
    """The memory of the experiment's agent."""
    (agent,) = manager.graph.agents.values()
    return agent.memory


def run(agent, monkeypatch):
    """The transitions that the memory is given in a run, and the run's records."""
    manager = experiment(agent)
    manager.create_graph(rl.Runtime(seed=1))
    added = []
    memory = memory_of(manager)
    inner = memory.add

    def noted(transition):
        inner(transition)
        added.append(transition)

    monkeypatch.setattr(memory, "add", noted)
    records = list(manager.improve())
    return added, records


@pytest.mark.parametrize("agent", [dqn, ppo])
def test_lost_life_is_terminal_for_learning_alone(agent, monkeypatch):
    added, records = run(agent(), monkeypatch)
    assert [each.terminated[0] for each in added] == [step % LIFE == 0 for step in range(1, 41)]
    assert not any(each.truncated[0] for each in added)
    assert all(each.reward[0] == 1 for each in added)
    # The stack of the first decision of the second life continues that of the first life.
    assert added[5].observation["observation"][0, 0, 0].tolist() == [4, 5, 6]
    assert added[15].observation["observation"][0, 0, 0].tolist() == [1, 1, 1]
    episodes = [record.scalars for record in records if record.kind == "episode"]
    assert [each["episode/length"] for each in episodes] == [15, 15]
    assert [each["episode/reward"] for each in episodes] == [30, 30]


def test_stacks_of_a_ring_reach_over_lost_lives():
    manager = experiment(dqn())
    manager.create_graph(rl.Runtime(seed=1))
    manager.run()
    store = memory_of(manager).store
    positions = np.arange(40)
    for path, newest in ((OBSERVATIONS, positions % 15), (NEXT_OBSERVATIONS, positions % 15 + 1)):
        stacks = store.read(f"{path}observation", positions)[:, 0, 0]
        expected = 1 + np.maximum(newest[:, None] + np.arange(-2, 1), 0)
        np.testing.assert_array_equal(stacks, expected)
    assert store.ledger[TERMINATED].sum() == 40 // LIFE
    assert not store.ledger[TRUNCATED].any()
    assert (store.ledger[REWARDS][:40] == 1).all()


@pytest.mark.parametrize("agent", [dqn, ppo])
def test_hidden_state_continues_over_a_lost_life(agent, monkeypatch):
    added, _ = run(agent(rl.GRU(size=4)), monkeypatch)
    is_zero = [bool((each.extras["hidden_state"] == 0).all()) for each in added]
    assert [step for step, zero in enumerate(is_zero) if zero] == [0, 15, 30]


def test_unknown_info_is_refused():
    manager = experiment(dqn(), info="lost")
    manager.create_graph(rl.Runtime(seed=1))
    with pytest.raises(ConfigurationError, match=r"names the info 'lost'.*it reports life_lost"):
        manager.run()


def test_trained_agent_acts_on_observations_alone(tmp_path):
    manager = experiment(dqn())
    run = run_experiment(manager, rl.Runtime(seed=1), name="x", root=tmp_path, settings=QUIET)
    agent = rl.load(run.folder.path)
    seen = np.full((2, *SHAPE), 1, np.uint8)
    actions = [agent.act({"observation": seen + step}, greedy=True).shape for step in range(8)]
    assert actions == [(2,)] * 8
