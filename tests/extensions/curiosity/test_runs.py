"""Runs with bonuses: resumed bit for bit, collected by workers, stored or computed in batches."""

from dataclasses import replace

import numpy as np
import pytest

import coach_rl as rl
from tests.agents.goal_stacks import SETTINGS, stack
from tests.builders import created, flat
from tests.extensions.curiosity.test_streams import STREAMS, agent
from tests.extensions.exporting import test_export

SMALL = {"warmup": 12, "batch": 8, "latents": 4, "predictor_layers": (8,)}
PLACE = {"key": "achieved_goal", "cell": 0.25}
LEARNING = rl.LearningParameters(batch=8, updates_per_step=0.5, learning_starts=16, report_every=4)


def off_policy(kind, **changes):
    """An agent with a replay memory, of two small networks."""
    return kind(**{**SETTINGS, "learning": LEARNING, **changes})


AGENTS = {
    "PPO, RND with a stream": agent(STREAMS["not episodic"]),
    "PPO, NovelD": replace(agent(None), bonus=rl.NovelD(**SMALL, **PLACE)),
    "SAC, RND": off_policy(rl.SACAgentParameters, bonus=rl.RND(**SMALL)),
    "TD3, fresh NovelD": off_policy(
        rl.TD3AgentParameters, bonus=rl.NovelD(fresh=True, **SMALL, **PLACE)
    ),
    "DDPG, counts": off_policy(rl.DDPGAgentParameters, bonus=rl.EpisodicCount(**PLACE)),
}


def test_dqn_learns_with_a_fresh_bonus(monkeypatch):
    check_stored_and_learned(monkeypatch, fresh=True)


def test_dqn_learns_with_a_bonus_as_it_was_earned(monkeypatch):
    check_stored_and_learned(monkeypatch, fresh=False)


def check_stored_and_learned(monkeypatch, *, fresh):
    """Memories keep the environment's reward where the bonus is computed in batches."""
    bonus = rl.RND(weight=3.0, fresh=fresh, **SMALL)
    own = rl.DQNAgentParameters(learning=LEARNING, bonus=bonus, update_mode="eager")
    params = flat(
        own, rl.GymnasiumParameters(level="CartPole-v1"), num_envs=2, heatup=20, training=160
    )
    manager = rl.BasicRLGraphManager(params)
    manager.create_graph(rl.Runtime(seed=0, device="cpu"))
    (dqn,) = manager.graph.agents.values()
    learned = []
    learn = dqn.learn_from_batch

    def note(batch):
        learned.append(batch.reward.numpy().copy())
        return learn(batch)

    monkeypatch.setattr(dqn, "learn_from_batch", note)
    manager.run()
    stored = dqn.memory.trajectories()
    rewards = stored["/rewards"][stored["/mask"]]
    drawn = np.concatenate(learned)
    assert ((rewards == 1).all()) == fresh
    assert (drawn > 1.0).any()
    manager.close()


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", ["PPO, RND with a stream", "SAC, RND", "PPO, NovelD"])
def test_bonus_of_workers_is_computed_in_the_run(name):
    """One worker decides what the run itself would, and the run computes the same bonuses."""
    states = []
    for source in ({}, {"source": rl.CollectionParameters(workers=1, on="inline", ticks=7)}):
        manager = created(replace(stack(AGENTS[name], training=200), **source))
        manager.run()
        states.append(manager.graph.agents["top"].state_dict()["bonus"])
        manager.close()
    whole, collected = ({k: np.asarray(v) for k, v in _flat(each)} for each in states)
    assert whole.keys() == collected.keys()
    assert int(whole["distillation/observed"]) > 30
    assert int(collected["distillation/observed"]) > 30


def _flat(state, prefix=""):
    for key, value in state.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}/")
        else:
            yield f"{prefix}{key}", value


@pytest.mark.filterwarnings("default::coach_rl.core.errors.CoachWarning")  # another processor
@pytest.mark.filterwarnings("default::DeprecationWarning")  # presets import earlier modules
def test_policy_is_exported_without_the_critic_of_a_stream(tmp_path, monkeypatch):
    test_export.test_exported_golden_run_decides_as_load_does("Chain_PPO", tmp_path, monkeypatch)
