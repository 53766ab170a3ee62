"""Bonuses to what a level learns from, and filters of what it stores, against plain lists."""

from collections import Counter, defaultdict
from dataclasses import replace
from functools import cache, partial

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.agents.bonuses import Bonus
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import End
from coach_rl.core.saved import Saved
from coach_rl.core.signals import SILENT
from coach_rl.extensions.episode_filters.episode_filter import EpisodeFilter
from coach_rl.filters import LinearBoxToBoxMap, OutputFilter
from tests.agents import goal_stacks
from tests.agents.decisions import outcome, transition
from tests.agents.goal_stacks import TORSO
from tests.agents.resuming import after, amid, assert_resumes
from tests.builders import agents_of, created

KEY = "observation"
SETTINGS = {
    "learning": rl.LearningParameters(
        batch=16, updates_per_step=0.5, learning_starts=20, report_every=5
    ),
    "exploration": rl.GaussianNoise(scale=rl.ConstantSchedule(value=0.3)),
    "actor": rl.ActorParameters(torso=TORSO),
    "critic": rl.CriticParameters(torso=TORSO),
    "update_mode": "eager",
}


def effort(before, action, outcome):
    """Distance less the size of the action, and 10 where the level below reached its goal."""
    moved = np.linalg.norm(outcome.observation[KEY] - before[KEY], axis=1)
    reached = (outcome.below & End.GOAL) > 0
    return moved - np.abs(action).sum(axis=1) + 10.0 * reached


class Counts(Saved):
    """1 / sqrt(visits) of the cell that a decision led to."""

    SAVED = ("visits",)

    def __init__(self):
        self.visits = np.zeros((8, 8), np.int64)

    def __call__(self, before, action, outcome):
        cells = np.clip(4 * (outcome.observation["achieved_goal"] + 1), 0, 7).astype(int)
        np.add.at(self.visits, tuple(cells.T), 1)
        return 1 / np.sqrt(self.visits[tuple(cells.T)])


@parameter_class
class CountsParameters:
    def build(self, context):
        assert context.place.agent_below is not None
        return Counts()


class Won(EpisodeFilter):
    """Keeps episodes of the environment in which its goal was reached."""

    def over(self, outcome):
        return (outcome.end & (End.TERMINATED | End.TRUNCATED)) > 0

    def keeps(self, outcome):
        return (outcome.end & End.TERMINATED) > 0


@parameter_class
class WonParameters:
    def build(self, context):
        return Won()


def winner(**changes):
    learning = rl.LearningParameters(batch=4, learning_starts=4, report_every=2)
    return td3(stores=WonParameters(), infos=("is_success",), learning=learning, **changes)


FILTERED = {
    "input_filter": rl.InputFilter(
        reward=(rl.RewardRescaleFilter(factor=0.5),),
        observation={KEY: (rl.ObservationNormalizationFilter(),)},
    )
}
SCALED = {"output_filter": OutputFilter(action=(LinearBoxToBoxMap(),))}


def stack(top, low=None, *, training=300):
    """Two levels; of a decision above, success is the last step's."""
    low = low or td3(memory=rl.ReplayMemoryParameters(capacity=2_000))
    params = goal_stacks.stack(top, low, training=training)
    schedule = replace(
        params.schedule,
        heatup=rl.EnvironmentSteps(60),
        evaluation_interval=rl.EnvironmentSteps(150),
        evaluation_episodes=rl.EnvironmentEpisodes(5),
        progress_interval=rl.EnvironmentSteps(10),
    )
    return replace(params, schedule=schedule, decision_infos={"is_success": "last"})


def td3(**changes):
    return rl.TD3AgentParameters(**{**SETTINGS, **changes})


PPO = rl.PPOAgentParameters(
    algorithm=rl.PPOAlgorithmParameters(rollout=rl.EnvironmentSteps(16), epochs=1),
    bonus=effort,
    update_mode="eager",
    **FILTERED,
)


@cache
def names_without_bonus():
    """The names of the scalars of a run without bonuses."""
    with created(stack(td3(), td3())) as plain:
        return {name for each in plain.improve() for name in each.scalars}


WITH_BONUS = {
    "top": td3(bonus=effort, **FILTERED),
    "low": td3(bonus=effort, **FILTERED, **SCALED),
}


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    ("level", "agent"),
    [*WITH_BONUS.items(), ("top", PPO)],
    ids=["top", "low", "on policy"],
)
def test_bonus_is_added_to_stored_rewards_before_filters(level, agent, monkeypatch):
    check_stored_rewards(level, agent, monkeypatch)


def check_stored_rewards(level, agent, monkeypatch, **experiment):
    params = stack(agent if level == "top" else td3(), agent if level == "low" else td3())
    manager = created(replace(params, **experiment))
    owner = manager.graph.agents[level]
    acted, observed, stored = {}, [], []
    act, observe, store = owner.act, owner.observe, owner.store

    def note_act(rows, request, clock):
        action = act(rows, request, clock)
        if clock.learns:
            for place, row in enumerate(request.rows.tolist()):
                acted[row] = request.observation[KEY][place].copy(), action[place].copy()
        return action

    def note_observe(rows, outcome, clock):
        kept = outcome.rows if not owner.is_on_policy else outcome.rows[~rows.heatup[outcome.rows]]
        for place, row in enumerate(outcome.rows.tolist()):
            if clock.learns and row in kept:
                before, action = acted[row]
                bonus = np.linalg.norm(outcome.observation[KEY][place] - before)
                bonus += 10.0 * bool(outcome.below[place] & End.GOAL) - np.abs(action).sum()
                observed.append(0.5 * (outcome.reward[place] + bonus))
        observe(rows, outcome, clock)

    monkeypatch.setattr(owner, "act", note_act)
    monkeypatch.setattr(owner, "observe", note_observe)
    monkeypatch.setattr(
        owner, "store", lambda each: stored.extend(each.reward.tolist()) or store(each)
    )
    records = list(manager.improve())
    assert len(stored) > 40
    np.testing.assert_allclose(stored, observed, rtol=1e-5, atol=1e-5)
    manager.close()
    names = {name for each in records for name in each.scalars}
    assert f"signals/{level}/bonus/mean" in names
    assert f"signals/{level}/bonus/mean" not in names_without_bonus()


def test_returns_in_the_log_are_without_the_bonus():
    """Both levels of the stack are as good as random: the bonus comes in before they learn."""
    returns = []
    for bonus in (None, effort):
        learning = rl.LearningParameters(learning_starts=20, batch=16, updates_per_step=1e-6)
        agent = td3(bonus=bonus, learning=learning, memory=rl.ReplayMemoryParameters())
        low = td3(learning=learning, memory=rl.ReplayMemoryParameters())
        manager = created(stack(agent, low))
        returns.append(
            [
                {key: value for key, value in each.scalars.items() if "return" in key}
                for each in manager.improve()
                if each.kind in ("level", "evaluation")
            ]
        )
        manager.close()
    assert returns[0] == returns[1]
    assert any(returns[0])


def test_won_episodes_are_stored_as_plain_lists_hold_them(monkeypatch):
    check_won_episodes(monkeypatch, training=900)


def check_won_episodes(monkeypatch, training, **experiment):
    manager = created(replace(stack(winner(), training=training), **experiment))
    top, low = agents_of(manager)
    held, expected, found = defaultdict(list), defaultdict(list), defaultdict(list)
    keep, store = top._keep, top.store
    dropped = 0

    def note_keep(rows, transition, outcome):
        nonlocal dropped
        for place, row in enumerate(transition.rows.tolist()):
            held[row].append(transition.next_observation[KEY][place].tolist())
            if outcome.end[place] & (End.TERMINATED | End.TRUNCATED):
                whole = held.pop(row)
                won = bool(outcome.end[place] & End.TERMINATED)
                expected[row] += whole if won else []
                dropped += 0 if won else len(whole)
        keep(rows, transition, outcome)

    def note_store(transition):
        (row,) = transition.rows.tolist()
        found[row].append(transition.next_observation[KEY][0].tolist())
        store(transition)

    monkeypatch.setattr(top, "_keep", note_keep)
    monkeypatch.setattr(top, "store", note_store)
    manager.run()
    assert found == expected
    assert dropped > 20
    kept = sum(map(len, found.values()))
    assert kept == top.memory.store.counts.sum() > 10
    shown = top.memory.trajectories()
    ends = (shown["/terminated"] | shown["/truncated"])[shown["/mask"]].sum()
    assert ends >= 3
    assert 0 < top.training_steps <= kept  # held-back and dropped decisions earn none
    assert low.memory.store.counts.sum() > kept
    manager.close()


WINNING = stack(winner(bonus=CountsParameters()), training=300)


def test_held_back_transitions_resume_bit_for_bit(tmp_path):
    def is_held(manager):
        return amid(manager) and manager.state_dict()["agents"]["top"]["stores"]["held"]

    assert_resumes(partial(created, WINNING), tmp_path, after(150, is_held))


def test_rows_that_are_cut_off_lose_what_is_held():
    held = Won()
    rows = np.array([0, 2])
    outcome = outcome_of(rows, end=0)
    assert list(held(transition_of(rows), outcome)) == []
    assert Counter(held.state_dict()["held"].keys()) == {"0": 1, "2": 1}
    held.drop(np.array([0, 1]))
    stored = held(transition_of(rows), outcome_of(rows, end=End.TERMINATED))
    assert [each.rows.tolist() for each in stored] == [[0], [2], [2]]


def transition_of(rows):
    place = np.zeros((len(rows), 1), np.float32)
    return transition({KEY: place}, place, {KEY: place}, rows=rows, reward=0.0)


def outcome_of(rows, end):
    seen = transition_of(rows).observation
    return outcome(seen, rows=rows, reward=0.0, end=np.full(len(rows), end, np.uint8))


def wrong_shape():
    rows = np.arange(3)
    Bonus(lambda *_: 1.0, SILENT, "agent 'a'")({}, rows, outcome_of(rows, end=0))


class Forgetful:
    """A bonus with a state that nothing saves."""

    def __init__(self):
        self.counts = 0

    def __call__(self, before, action, outcome):
        self.counts += 1
        return np.full(len(outcome.rows), self.counts)


@parameter_class
class ForgetfulParameters:
    def build(self, context):
        return Forgetful()


def of_two(before, action):
    return np.zeros(len(action))


HINDSIGHT = rl.ReplayMemoryParameters(relabelling=rl.HindsightParameters())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (wrong_shape, "bonus of agent 'a' must be a finite number .* of 3 .* of shape \\(\\)"),
        (
            lambda: created(stack(td3(bonus=of_two))),
            "bonus of .*'top' must be a function of observations before, .* got of_two",
        ),
        (
            lambda: created(stack(td3(bonus=ForgetfulParameters()))),
            "bonus of .*'top' has a state \\(counts\\) that would not be saved; make Forgetful",
        ),
        (
            lambda: created(stack(td3(), td3(bonus=effort, memory=HINDSIGHT))),
            "hindsight rewards .* without the bonus; leave the bonus out",
        ),
    ],
)
def test_bonus_or_filter_that_does_not_fit_is_refused(call, message):
    with pytest.raises(ConfigurationError, match=message):
        call()
