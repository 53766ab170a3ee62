"""Streams of reward against plain loops in double precision, in every kind of run of PPO."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import coach_rl as rl
from coach_rl.configuration.overrides import parse_overrides
from coach_rl.configuration.preset_file import load_preset
from coach_rl.configuration.presets import find_preset
from coach_rl.core.errors import ConfigurationError
from tests.agents.goal_stacks import SETTINGS, stack
from tests.builders import created
from tests.refusals import check_refused

STREAMS = {
    "not episodic": rl.RewardStream(discount=0.9, weight=0.3),
    "episodic": rl.RewardStream(name="own", discount=0.8, episodic=True, weight=2.0),
}
PPO = {"rollout": rl.EnvironmentSteps(48), "epochs": 1, "minibatch": 48, "gae_lambda": 0.9}


def rnd(stream):
    return rl.RND(warmup=8, batch=16, latents=4, stream=stream)


def agent(stream, recurrence=None, **algorithm):
    torso = rl.TorsoParameters(middleware=(8,), embedder=(8,), recurrence=recurrence)
    return rl.PPOAgentParameters(
        algorithm=rl.PPOAlgorithmParameters(**{**PPO, **algorithm}),
        network=rl.ActorCriticParameters(torso=torso),
        bonus=rnd(stream),
        update_mode="eager",
    )


class Rounds:
    """What an agent learned from in each round, and its critics' values after ends."""

    def __init__(self, agent, monkeypatch):
        self.agent = agent
        self.found = []
        self.after = {}
        self._value_after, self._batch, self._learn = (
            agent.value_after,
            agent.rollout_batch,
            agent.learn_from_rollout,
        )
        monkeypatch.setattr(agent, "value_after", self.value_after)
        monkeypatch.setattr(agent, "rollout_batch", self.rollout_batch)
        monkeypatch.setattr(agent, "learn_from_rollout", self.learn_from_rollout)

    def value_after(self, rollout, positions):
        values = self._value_after(rollout, positions)
        self.after = dict(zip(positions.tolist(), values.double().numpy(), strict=True))
        return values

    def rollout_batch(self, rollout, grid):
        batch = self._batch(rollout, grid)
        copied = {
            name: getattr(rollout, name).clone().numpy()
            for name in ("reward", "terminated", "truncated", "duration", "follows")
        }
        streams = {k: v.clone().numpy() for k, v in rollout.extras.items() if "streams/" in k}
        self.found.append((copied | streams, grid, batch, dict(self.after)))
        return batch

    def learn_from_rollout(self):
        metrics, steps = self._learn()
        self.found[-1] = (*self.found[-1], metrics)
        return metrics, steps


def plain_advantages(kept, grid, values, after, *, reward, discount, trace, episodic, by_duration):
    """Advantages by position: a loop over each row's transitions from the last to the first."""
    found = {}
    for row in range(grid.index.shape[1]):
        positions = grid.index[grid.valid[:, row], row].tolist()
        following = 0.0
        for place in reversed(range(len(positions))):
            now = positions[place]
            ended = bool(kept["terminated"][now] or kept["truncated"][now])
            later = positions[place + 1] if place + 1 < len(positions) else None
            continues = later is not None and (
                (not ended and bool(kept["follows"][later])) or (ended and not episodic)
            )
            value_then = values[later] if continues else after[now]
            if episodic and kept["terminated"][now]:
                value_then = 0.0
            gamma = discount ** int(kept["duration"][now]) if by_duration else discount
            delta = float(kept[reward][now]) + gamma * float(value_then) - float(values[now])
            following = delta + gamma * trace * (following if continues else 0.0)
            found[now] = following
    return found


def check_rounds(rounds, stream):
    """Compare all rounds with the plain loops; the number of episode ends the stream crosses."""
    own = rounds.agent.params.algorithm
    bridged = 0
    for kept, grid, batch, after, metrics in rounds.found:
        name = stream.name
        values = {"": batch.value.double().numpy(), name: batch.streams["0"][:, 0].double().numpy()}
        settings = {"trace": own.gae_lambda, "by_duration": own.discount_by_duration}
        main = plain_advantages(
            kept, grid, values[""], {k: v[0] for k, v in after.items()},
            reward="reward", discount=own.discount, episodic=True, **settings,
        )  # fmt: skip
        more = plain_advantages(
            kept, grid, values[name], {k: v[1] for k, v in after.items()},
            reward=stream.column, discount=stream.discount, episodic=stream.episodic, **settings,
        )  # fmt: skip
        positions = sorted(main)
        expected = [main[each] + stream.weight * more[each] for each in positions]
        np.testing.assert_allclose(batch.advantage[positions], expected, rtol=1e-4, atol=1e-5)
        targets = [more[each] + float(values[name][each]) for each in positions]
        np.testing.assert_allclose(batch.streams["0"][positions, 1], targets, rtol=1e-4, atol=1e-5)
        errors = 0.5 * np.mean([main[each] ** 2 for each in positions])
        errors += 0.5 * np.mean([more[each] ** 2 for each in positions])
        if len(positions) <= own.minibatch:  # the only gradient step is of the values above
            assert metrics["value_loss"] == pytest.approx(errors, rel=1e-3)
        for row in range(grid.index.shape[1]):
            own_row = grid.index[grid.valid[:, row], row]
            bridged += int((kept["terminated"] | kept["truncated"])[own_row[:-1]].sum())
    return bridged


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("level", ["top", "low"])
@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("by_duration", [False, True])
def test_advantages_of_a_stream_equal_plain_loops(kind, level, by_duration, monkeypatch):
    stream = STREAMS[kind]
    own = agent(stream, discount_by_duration=by_duration)
    td3 = rl.TD3AgentParameters(**SETTINGS)
    params = stack(own, training=600) if level == "top" else stack(td3, own, training=300)
    manager = created(params)
    rounds = Rounds(manager.graph.agents[level], monkeypatch)
    manager.run()
    assert len(rounds.found) >= 2
    assert check_rounds(rounds, stream) >= 2
    paid = np.concatenate([kept[stream.column] for kept, *_ in rounds.found])
    assert np.count_nonzero(paid) > 20


def test_recurrent_critics_learn_a_stream(monkeypatch):
    stream = STREAMS["not episodic"]
    manager = created(stack(agent(stream, rl.GRU(size=6), sequence=8), training=600))
    rounds = Rounds(manager.graph.agents["top"], monkeypatch)
    manager.run()
    assert check_rounds(rounds, stream) >= 2


SMALL_RUN = {"num_envs": 4, "steps": 300}
SHORT = {"rollout": rl.EnvironmentSteps(64), "epochs": 1, "minibatch": 32}


@pytest.mark.parametrize("preset", ["Cables_PPO", "TMaze_PPO"])
def test_masked_and_recurrent_presets_learn_a_stream(preset):
    torch.set_num_threads(1)
    params = load_preset(find_preset(preset)).build(SMALL_RUN).parameters
    algorithm = replace(params.agent.algorithm, **SHORT, sequence=8)
    bonus = replace(rnd(STREAMS["not episodic"]), keys=("observation",))
    own = replace(params.agent, algorithm=algorithm, bonus=bonus, update_mode="eager")
    every = rl.EnvironmentSteps(50)
    schedule = replace(params.schedule, evaluation_interval=None, progress_interval=every)
    manager = rl.BasicRLGraphManager(replace(params, agent=own, schedule=schedule))
    manager.create_graph(rl.Runtime(seed=0, device="cpu"))
    noted = {name for each in manager.improve() for name in each.scalars}
    assert "signals/main/novelty/mean" in noted
    assert "signals/main/predictor_loss/mean" in noted
    assert manager.graph.agents["main"].training_steps >= 4
    manager.close()


def test_members_of_a_group_learn_streams_of_their_own(monkeypatch):
    pytest.importorskip("coach_rl.extensions.groups")
    stream = STREAMS["not episodic"]
    members = [
        rl.GroupMember(agent=replace(agent(stream), name=name), actions=action)
        for name, action in (("one", "0"), ("two", "1"))
    ]
    manager = created(stack(rl.AgentGroupParameters(members=tuple(members)), training=500))
    group = manager.graph.agents["top"].members
    rounds = [Rounds(group[name], monkeypatch) for name in ("one", "two")]
    manager.run()
    assert all(check_rounds(each, stream) for each in rounds)


def learning(kind=rl.TD3AgentParameters, **changes):
    return lambda: created(stack(kind(**SETTINGS, **changes)))


def option_critic_with_a_stream():
    preset = load_preset(find_preset("PointMass_PPO_Skills"))
    words = "skills=option_critic; levels.1.agent.bonus=RND(stream=RewardStream())"
    preset.configure(parse_overrides(words)).create_graph(rl.Runtime(seed=0, device="cpu"))


FRESH = rl.RND(fresh=True)
SUMMED = rl.ReplayMemoryParameters(n_step=3)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (learning(bonus=rnd(rl.RewardStream())), "one critic for all rewards, and its bonus a"),
        (
            lambda: rl.RND(stream=rl.RewardStream(), fresh=True),
            "RND.fresh is for replay memories and `stream`",
        ),
        (
            learning(bonus=FRESH, memory=SUMMED),
            "bonus of ... 'top' is ... memory.n_step=3 adds up the rewards",
        ),
        (
            learning(bonus=FRESH, input_filter=rl.InputFilter()),
            "bonus of ... 'top' is ... the InputFilter changes what the memory keeps",
        ),
        (
            lambda: created(stack(replace(agent(None), bonus=FRESH))),
            "the agent has no replay memory; leave out fresh",
        ),
        (option_critic_with_a_stream, "compares the values of options, which streams"),
    ],
)
def test_stream_or_fresh_bonus_that_does_not_fit_is_refused(call, message):
    check_refused(call, ConfigurationError, message)
