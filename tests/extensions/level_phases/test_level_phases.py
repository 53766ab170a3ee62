"""Levels that warm up, freeze, thaw and take turns: what they do, save, log, and refuse."""

import copy
from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.clock import Phase
from coach_rl.extensions.level_phases.level_phases import FIELDS
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.sessions.session import run_experiment
from coach_rl.telemetry import description
from tests import builders
from tests.builders import created, ddpg, graph
from tests.levels.testing_part import DrawnTests

PLACES = rl.GoalSpace(low=(-1.0, -1.0), high=(1.0, 1.0), threshold=(0.3, 0.3), elements=(0, 1))
IN_HINDSIGHT = rl.ReplayMemoryParameters(relabelling=rl.HindsightParameters(goal_ends_episode=True))
TORSO = rl.TorsoParameters(middleware=(8,), activation="relu", orthogonal=False)
hindsight = partial(
    ddpg,
    torso=TORSO,
    memory=IN_HINDSIGHT,
    updates_per_step=0.5,
    learning_starts=10,
    report_every=20,
    normalise_observations=5.0,
)
ppo = partial(builders.ppo, 24, epochs=1, minibatch=8)
AGENTS = {"hindsight": hindsight, "on-policy": ppo}


def timed(settings):
    """A level, with what is among its settings of `LevelTimes`."""
    settings = {"goal_space": PLACES, **settings}
    times = {name: settings.pop(name) for name in FIELDS if name in settings}
    if times:
        settings["changes"] = (rl.LevelTimes(**times),)
    return rl.LevelParameters(**settings)


def parameters(agent=hindsight, *, training=600, heatup=0, **levels):
    """A stack of two levels, or three where the middle one is named; changes of each by name."""
    names = ("top", "middle", "low") if "middle" in levels else ("top", "low")
    described = (
        timed(
            {
                "name": name,
                "agent": agent(),
                "horizon": 4,
                "parts": () if name == "low" else (DrawnTests(rate=0.3),),
                **levels.get(name, {}),
            }
        )
        for name in names
    )
    return graph(
        *described,
        environment=rl.GoalPointMassParameters(terminate=True, threshold=0.2, max_episode_steps=47),
        num_envs=3,
        training=training,
        heatup=heatup,
        evaluation_interval=300,
        progress_interval=60,
    )


built = partial(created, seed=3)


def until(manager, steps):
    """Train until then; the records."""
    records = []
    for record in manager.improve():
        records.append(record)
        if manager.graph.clock.environment_steps >= steps and manager.progress.is_settled:
            break
    return records


def changes(records):
    """The phases of levels as the log tells them: level, phase, environment steps."""
    return [
        (record.level, record.phase, record.environment_steps)
        for record in records
        if record.kind == "level_phase"
    ]


def learners(records, begin, end):
    """The levels that learned in between."""
    return {
        record.level
        for record in records
        if record.kind == "train" and begin < record.environment_steps <= end
    }


def learned(manager, level):
    """Everything that a level's agent knows and counts."""
    return manager.state_dict()["agents"][level]


@pytest.mark.parametrize("agent", AGENTS.values(), ids=AGENTS)
def test_in_a_warm_up_the_level_learns_on_random_goals_and_those_above_do_not_learn(agent):
    manager = built(parameters(agent, low={"warmup": 240}))
    top = manager.graph.agents["top"]
    act, goals = top.act, []

    def spied(row_state, request, clock):
        action = act(row_state, request, clock)
        goals.extend((clock.environment_steps, goal) for goal in action)
        return action

    top.act = spied
    before = learned(manager, "top")["training_steps"]
    records = until(manager, 240)
    assert learned(manager, "top")["training_steps"] == before == 0
    assert learned(manager, "low")["training_steps"] > 0
    kept = len(top.memory)
    assert kept >= 240 / 4 if agent is hindsight else kept == 0
    random = np.array([goal for step, goal in goals if step < 240])
    assert len(random) > 30
    assert random.std(axis=0) == pytest.approx(1 / np.sqrt(3), abs=0.12), "uniform in [-1, 1]"
    records += until(manager, 600)
    assert changes(records) == [("top", Phase.HEATUP, 0), ("top", Phase.TRAIN, 240)]
    assert learned(manager, "top")["training_steps"] > 0
    assert learners(records, 240, 600) == {"top", "low"}


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(("agent", "level"), [(hindsight, "top"), (hindsight, "low"), (ppo, "low")])
def test_no_number_of_an_agent_changes_while_it_is_frozen(agent, level):
    manager = built(parameters(agent, **{level: {"frozen_from": 150, "frozen_until": 360}}))
    records = until(manager, 153)
    before = learned(manager, level)
    records += until(manager, 360)
    assert_same_state(before, learned(manager, level))
    records += until(manager, 600)
    assert learned(manager, level)["training_steps"] > before["training_steps"]
    assert changes(records) == [(level, Phase.TEST, 150), (level, Phase.TRAIN, 360)]
    assert level not in learners(records, 150, 360)
    assert learners(records, 360, 600) == {"top", "low"}
    told = [
        record.scalars["level/learns"]
        for record in records
        if record.kind == "level" and record.level == level and record.phase is Phase.TRAIN
    ]
    assert told == [1, 1, 0, 0, 0, 0, 1, 1, 1, 1]


def test_a_frozen_agent_acts_greedily_and_explores_again_once_it_is_thawed():
    manager = built(parameters(low={"frozen_until": 150}))
    low = manager.graph.agents["low"]
    act, explored = low.act, []

    def spied(row_state, request, clock):
        action = act(row_state, request, clock)
        pending = {key: values[request.rows] for key, values in row_state.pending.items()}
        explored.append(not np.allclose(action, low.policy_actions(pending)))
        return action

    low.act = spied
    until(manager, 300)
    assert not any(explored[:50])
    assert any(explored[50:])


def test_a_gap_in_a_memory_separates_what_was_stored_before_and_after_it():
    manager = built(parameters(low={"frozen_from": 150, "frozen_until": 300}))
    until(manager, 450)
    shown = manager.graph.agents["low"].memory.trajectories()
    for row in range(3):
        before, after = (
            shown[f"{prefix}observations/observation"][row][:100] for prefix in ("/", "/next_")
        )
        ended = shown["/terminated"][row] | shown["/truncated"][row]
        assert shown["/mask"][row].sum() == manager.graph.clock.environment_steps / 3 - 50
        assert ended[49], "the last transition before the gap is the last of its episode"
        joined = ~ended[:99]
        np.testing.assert_array_equal(after[:-1][joined], before[1:][joined])


def test_a_decision_that_a_frozen_agent_made_is_not_stored_when_it_has_been_thawed():
    manager = built(parameters(top={"frozen_until": 150}))
    top = manager.graph.agents["top"]
    act, store, made, stored = top.act, top.store, {}, []

    def acted(row_state, request, clock):
        made.update(dict.fromkeys(request.rows.tolist(), clock.phase))
        return act(row_state, request, clock)

    def kept(transition):
        stored.extend(made[row] for row in transition.rows.tolist())
        store(transition)

    top.act, top.store = acted, kept
    until(manager, 150)
    rows = manager.state_dict()["training"]["top"]["rows"]
    assert rows["decision_frozen"][~rows["waiting"]].any(), "the test wants an open decision"
    until(manager, 300)
    assert len(stored) > 20
    assert set(stored) == {Phase.TRAIN}


def test_levels_take_turns_the_lowest_first():
    manager = built(parameters(training=480, top={"turn": 60}, low={"turn": 120}))
    records = until(manager, 480)
    assert changes(records) == [
        ("top", Phase.TEST, 0),
        ("top", Phase.TRAIN, 120),
        ("low", Phase.TEST, 120),
        ("top", Phase.TEST, 180),
        ("low", Phase.TRAIN, 180),
        ("top", Phase.TRAIN, 300),
        ("low", Phase.TEST, 300),
        ("top", Phase.TEST, 360),
        ("low", Phase.TRAIN, 360),
    ]
    assert len(manager.graph.agents["low"].memory) == 3 * 120
    assert learners(records, 183, 300) == {"low"}


HEATUP, TRAIN, TEST = Phase.HEATUP, Phase.TRAIN, Phase.TEST


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize(
    ("levels", "steps", "expected"),
    [
        (
            {"middle": {"warmup": 240}, "low": {"warmup": 120}},
            300,
            [
                ("top", HEATUP, 0),
                ("middle", HEATUP, 0),
                ("middle", TRAIN, 120),
                ("top", TRAIN, 240),
            ],
        ),
        (  # turns begin when the warm-up is over
            {"top": {"turn": 60}, "low": {"turn": 60, "warmup": 150}, "heatup": 60},
            240,
            [("top", HEATUP, 60), ("top", TEST, 150), ("top", TRAIN, 210), ("low", TEST, 210)],
        ),
        (  # above a level that warms up, a frozen level acts at random as well
            {"top": {"frozen_until": 300}, "low": {"warmup": 150}, "heatup": 60},
            330,
            [("top", HEATUP, 60), ("top", TEST, 150), ("top", TRAIN, 300)],
        ),
        (  # the next level has the turn of one that is frozen
            {"top": {"turn": 60, "frozen_until": 270}, "low": {"turn": 60}, "heatup": 60},
            360,
            [
                *[("top", TEST, 0), ("top", TRAIN, 270), ("low", TEST, 270)],
                *[("top", TEST, 300), ("low", TRAIN, 300)],
            ],
        ),
    ],
    ids=["three warm-ups", "turns after warm-up", "frozen above warm-up", "turn of frozen level"],
)
def test_level_phases_schedules_combined_change_in_order(levels, steps, expected):
    with built(parameters(**levels)) as manager:
        assert changes(until(manager, steps)) == expected


def test_a_success_rate_once_reached_stays_reached():
    easy = replace(PLACES, threshold=(0.6, 0.6))
    rate = rl.SuccessRate(rate=0.5, over=20, level="low")
    manager = built(
        parameters(top={"frozen_until": rate}, low={"goal_space": easy, "frozen_from": 450})
    )
    records = until(manager, 600)
    (begin, *rest) = [each for each in changes(records) if each[0] == "top"]
    assert begin == ("top", Phase.TEST, 0)
    assert [phase for _, phase, _ in rest] == [Phase.TRAIN]
    assert 20 < rest[0][2] < 450


def test_success_rate_reached_before_a_stop_stays_reached_though_the_rate_has_fallen():
    easy = replace(PLACES, threshold=(0.6, 0.6))
    rate = rl.SuccessRate(rate=0.5, over=20, level="low")
    schedule = {"top": {"frozen_until": rate}, "low": {"goal_space": easy}}
    with built(parameters(**schedule)) as manager, built(parameters(**schedule)) as resumed:
        assert changes(until(manager, 600))[-1][:2] == ("top", Phase.TRAIN)
        low = manager.graph.training.levels[-1]
        low.sub_episodes.forget()
        assert not low.sub_episodes.success_rate(rate.over) >= rate.rate
        resumed.load_state_dict(manager.state_dict())
        for each in (manager, resumed):
            assert changes(until(each, 630)) == []
            assert each.graph.timings.unreached() == []
            assert each.graph.clock.of_level("top").phase is Phase.TRAIN
        assert_same_state(manager.state_dict()["agents"], resumed.state_dict()["agents"])


def test_the_summary_says_which_success_rates_were_waited_for_in_vain(tmp_path):
    easy = replace(PLACES, threshold=(0.6, 0.6))
    reached, never = rl.SuccessRate(rate=0.01, over=20), rl.SuccessRate(rate=1.0, over=500)
    manager = rl.GraphManager(
        parameters(
            top={"frozen_from": replace(never, level="low")},
            low={"goal_space": easy, "frozen_from": reached, "frozen_until": never},
        )
    )
    result = run_experiment(manager, rl.Runtime(device="cpu"), name="waits", root=tmp_path)
    assert result.summary.incidents == (
        "level 'top' waited for a success rate of level 'low' of 1 over 500 sub-episodes to the "
        "end (frozen_from)",
        "level 'low' waited for a success rate of 1 over 500 sub-episodes to the end "
        "(frozen_until)",
    )
    assert result.incidents == (), "they are no troubles of the run itself"


def test_random_actions_of_heat_up_count_for_no_success_rate():
    easy = replace(PLACES, threshold=(0.6, 0.6))
    rate = rl.SuccessRate(rate=0.01, over=60, level="low")
    manager = built(
        parameters(
            top={"frozen_until": rate}, low={"goal_space": easy, "frozen_from": 590}, heatup=300
        )
    )
    (thaw,) = [
        step
        for name, phase, step in changes(until(manager, 600))
        if (name, phase) == ("top", Phase.TRAIN)
    ]
    assert manager.graph.training.levels[-1].sub_episodes.success_rate(60) > 0
    assert thaw > 350, "60 sub-episodes take longer"


SCHEDULES = {
    "warm-up": {"low": {"warmup": 200}},
    "warm-up by success": {"low": {"warmup": rl.SuccessRate(rate=0.2, over=15)}},
    "frozen for a time": {"top": {"frozen_from": 90, "frozen_until": 200}},
    "thawed": {"low": {"frozen_until": 200}},
    "turns": {"top": {"turn": 45}, "low": {"turn": 75, "warmup": 60}},
}


@pytest.mark.drawn(one_of=4)
@pytest.mark.parametrize(
    ("agent", "schedule"),
    [
        (hindsight, "warm-up"),
        pytest.param(hindsight, "warm-up by success", marks=pytest.mark.slow),
        pytest.param(hindsight, "frozen for a time", marks=pytest.mark.slow),
        (hindsight, "thawed"),
        (hindsight, "turns"),
        (ppo, "frozen for a time"),
    ],
)
def test_a_run_stopped_in_any_phase_resumes_bit_for_bit(agent, schedule):
    """A run is saved twice on its way; each resumes to the next save, or to the end."""
    params = parameters(agent, training=360, heatup=30, **SCHEDULES[schedule])
    whole, moments = built(params), (100, 220, 360)
    parts, states = [], []
    for moment in moments:
        parts.append(until(whole, moment))
        states.append(copy.deepcopy(whole.state_dict()))
    for number in (1, 2):
        resumed, expected = built(params), states[number]
        resumed.load_state_dict(copy.deepcopy(states[number - 1]))
        records = [*chain(*parts[:number]), *until(resumed, moments[number])]
        assert_same_state(expected["agents"], resumed.state_dict()["agents"])
        assert_same_state(expected["training"], resumed.state_dict()["training"])
        assert changes(records) == changes([*chain(*parts[: number + 1])])
        resumed.close()


def test_a_run_whose_schedule_is_taken_away_learns_everywhere():
    frozen, free = built(parameters(low={"frozen_from": 60})), built(parameters())
    until(frozen, 120)
    free.load_state_dict(frozen.state_dict())
    assert {record.level for record in until(free, 300) if record.kind == "train"} == {"top", "low"}


def test_evaluation_of_frozen_level_is_not_sampled():
    manager = built(parameters(top={"frozen_from": 60}, low={"frozen_from": 60}))
    until(manager, 120)
    with pytest.raises(rl.ConfigurationError):
        manager.evaluate(rl.EnvironmentEpisodes(1), sampling=True)
    manager = built(parameters(top={"frozen_from": 60}))
    until(manager, 120)
    with pytest.warns(rl.CoachWarning):
        manager.evaluate(rl.EnvironmentEpisodes(1), sampling=True)
    assert manager.graph.evaluation.clock.levels == {"top": Phase.TEST}


def test_the_description_tells_the_schedule():
    manager = built(
        parameters(top={"frozen_until": 99, "turn": 60}, low={"turn": 60, "warmup": 60})
    )
    told = description.described(manager)
    assert "frozen from the beginning until 99 environment steps" in told
    assert "learns in turns of 60 environment steps" in told
    assert "warm-up on random goals until 60 environment steps" in told
