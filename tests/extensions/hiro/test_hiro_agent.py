"""HIRO's upper level: candidates, the steps below, and which candidate explains them best."""

from collections import defaultdict
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
import torch
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.agents import LevelPlace
from coach_rl.core.levels import LevelDescription
from coach_rl.core.records import End
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.memories.batches import ACTIONS, LOW_BEGIN, LOW_END, POSITIONS
from coach_rl.memories.samplers import UnitContext
from tests.agents import goal_stacks
from tests.agents.decisions import context, transition
from tests.agents.goal_stacks import RELATIVE as GOALS
from tests.agents.goal_stacks import TORSO
from tests.agents.resuming import after, amid, assert_resumes
from tests.builders import agents_of, created

SETTINGS = {
    "learning": rl.LearningParameters(
        batch=16, updates_per_step=0.5, learning_starts=20, report_every=5
    ),
    "exploration": rl.GaussianNoise(scale=rl.ConstantSchedule(value=0.3)),
    "actor": rl.ActorParameters(torso=TORSO),
    "critic": rl.CriticParameters(torso=TORSO),
    "update_mode": "eager",
}


def low_agent(capacity=2_000, **changes):
    return rl.TD3AgentParameters(
        **{**SETTINGS, "memory": rl.ReplayMemoryParameters(capacity=capacity), **changes}
    )


def top_agent(capacity=500, **changes):
    return rl.HIROAgentParameters(
        **{
            **SETTINGS,
            "memory": rl.ReplayMemoryParameters(capacity=capacity),
            "input_filter": rl.InputFilter(reward=(rl.RewardRescaleFilter(factor=0.1),)),
            **changes,
        }
    )


def stack(top=None, low=None, *, training=400, **more):
    return goal_stacks.stack(top or top_agent(), low or low_agent(), training=training, **more)


def drawn(agent, size=16):
    """Decisions in the memory: the columns that the correction reads, and their steps below."""
    store = agent.memory.store
    positions = store.draw(np.random.default_rng(0), size)
    columns = {
        path: torch.from_numpy(store.read(path, positions))
        for path in agent.correction.inputs
        if path != POSITIONS
    }
    interval = {
        "rows": store.rows_of(positions),
        "begins": columns[LOW_BEGIN].numpy(),
        "ends": columns[LOW_END].numpy(),
    }
    return {POSITIONS: torch.from_numpy(positions), **columns}, interval


@pytest.fixture(scope="module")
def ran():
    """A stack after a run."""
    torch.set_num_threads(1)
    manager = created(stack())
    manager.run()
    yield manager
    manager.close()


def slow_log_prob(low, goal, row, begin, end):
    """Minus half the squared distances of one candidate, step by step, by the paper's formula."""
    store, total = low.memory.store, 0.0
    at = [store.positions_of(np.array([row]), np.array([step])) for step in range(begin, end)]
    start = store.read("/observations/achieved_goal", at[0])
    wanted = np.clip(start + goal, GOALS.low, GOALS.high)
    for position in at:
        seen = {
            key: torch.from_numpy(store.read(f"/observations/{key}", position))
            for key in low.observation_space.spaces
        }
        seen[rl.GOAL_KEY] = torch.from_numpy(wanted - seen["achieved_goal"].numpy()).float()
        with torch.no_grad():
            now = low.learner.actor.module(seen)[0].double().numpy()
        done = store.read("/actions", position)[0].astype(np.float64)
        half = (low.action_space.high - low.action_space.low) / 2
        total -= 0.5 * float((((done - now) / half) ** 2).sum())
    return total


def test_choices_and_log_probs_equal_a_plain_loop(ran):
    top, low = agents_of(ran)
    columns, interval = drawn(top)
    correction = top.correction
    state = correction.state_dict()
    steps = correction.steps_of(columns)
    candidates = correction.candidates(steps)
    log_probs = correction.log_likelihood(candidates, steps)
    slow = np.array(
        [
            [
                slow_log_prob(low, candidate, *(values[b] for values in interval.values()))
                for candidate in candidates[b]
            ]
            for b in range(len(candidates))
        ]
    )
    np.testing.assert_allclose(log_probs, slow, rtol=1e-4, atol=1e-5)
    # A choice that were a matter of rounding would prove nothing.
    best_two = np.sort(slow, axis=1)[:, -2:]
    clear = best_two[:, 1] - best_two[:, 0] > 1e-4
    assert clear.sum() >= 10
    correction.load_state_dict(state)
    corrected = correction.relabelled(steps)
    choice = slow.argmax(axis=1)
    assert len(set(choice)) > 2
    expected = candidates[np.arange(len(choice)), choice]
    np.testing.assert_array_equal(corrected[clear], expected[clear])
    assert (np.diff(interval["ends"] - interval["begins"]) != 0).any()


def test_the_likeliest_are_found_without_passing_all_through_the_network(ran, monkeypatch):
    """Below is a policy that heeds its goals."""
    top, low = agents_of(ran)
    correction = top.correction
    steps = correction.steps_of(drawn(top, 400)[0])
    candidates = correction.candidates(steps)

    def policy(seen):
        passed.append(len(seen[rl.GOAL_KEY]))
        return np.tanh(5 * seen[rl.GOAL_KEY])

    passed = []
    monkeypatch.setattr(low, "policy_actions", policy)
    noise = np.random.default_rng(0).normal(0, 0.3, steps.action.shape)
    steps = replace(steps, action=np.tanh(5 * steps.observation[rl.GOAL_KEY]) + noise)
    log_probs = correction.log_likelihood(candidates, steps)
    every = passed.pop()
    likeliest = correction.likeliest(candidates, steps)
    np.testing.assert_array_equal(likeliest, log_probs.argmax(axis=1))
    assert len(set(likeliest)) == 10
    assert sum(passed) < 0.7 * every


def test_one_step_a_decision_leaves_nothing_to_compare_twice():
    _, correction, columns = on_a_line(candidates=2)
    columns |= {
        ACTIONS: torch.tensor([[-1.2]]),
        LOW_BEGIN: torch.tensor([2]),
        "/observations/place": torch.tensor([[2.2]]),
    }
    steps = correction.steps_of(columns)
    both = np.array([[[-1.2], [0.1]]], np.float32)
    assert correction.likeliest(both, steps).tolist() == [1]


def test_log_probs_are_in_the_units_the_level_below_acts_in():
    low = low_agent(
        exploration=rl.GaussianNoise(scale=rl.ConstantSchedule(value=9.0), unit="raw"),
        critic=rl.CriticParameters(
            torso=SETTINGS["critic"].torso, action_layers=(0, 1), action_unit="raw"
        ),
        output_filter=rl.OutputFilter(action=(rl.LinearBoxToBoxMap(low=-30.0, high=30.0),)),
    )
    manager = created(stack(low=low))
    manager.run()
    top, agent = agents_of(manager)
    columns, interval = drawn(top, 8)
    steps = top.correction.steps_of(columns)
    assert np.abs(steps.action).max() > 20
    log_probs = top.correction.log_likelihood(steps.sent[:, None], steps)[:, 0]
    slow = [
        slow_log_prob(agent, sent, *(values[b] for values in interval.values()))
        for b, sent in enumerate(steps.sent)
    ]
    np.testing.assert_allclose(log_probs, slow, rtol=1e-4, atol=1e-5)


def test_candidates_are_asked_achieved_and_samples_within_reach(ran):
    top, low = agents_of(ran)
    columns, interval = drawn(top, 400)
    steps = top.correction.steps_of(columns)
    candidates = top.correction.candidates(steps).swapaxes(0, 1)
    assert candidates.shape == (10, 400, 2)
    np.testing.assert_array_equal(candidates[0], columns[ACTIONS].numpy())
    store = low.memory.store
    before, after = (
        store.read(path, store.positions_of(interval["rows"], when))
        for path, when in (
            ("/observations/achieved_goal", interval["begins"]),
            ("/next_observations/achieved_goal", interval["ends"] - 1),
        )
    )
    np.testing.assert_allclose(
        candidates[1], np.clip(after - before, (-0.5, -0.25), (0.5, 0.25)), atol=1e-6
    )
    assert (np.abs(candidates) <= (0.5, 0.25)).all()
    inner = np.abs(candidates[1:2]) < 0.02  # samples around these are clipped on both sides alike
    spread = (candidates[2:] - candidates[1])[np.broadcast_to(inner, (8, 400, 2))]
    assert abs(spread.mean()) < 0.03
    for element, reach in enumerate((0.5, 0.25)):
        # A normal of deviation 0.5 within [-1, 1]: 68 % lie within one deviation.
        near = inner[0, :, element]
        off = (candidates[2:, near, element] - candidates[1, near, element]) / reach
        assert 0.6 < (np.abs(off) < 0.5).mean() < 0.76


@dataclass
class Decision:
    """A decision of the upper level as it was stored, and what happened below meanwhile."""

    begun: np.ndarray
    """What was achieved when it began, [2]."""
    sent: np.ndarray
    """The sub-goal, [2]."""
    below: End
    end: End
    steps: list[tuple[dict[str, np.ndarray], np.ndarray]]
    """Observations and actions of the level below."""


def recorded(params, monkeypatch):
    """A stack after a run, and the decisions of each row in their order."""
    manager = created(params)
    top, low = agents_of(manager)
    steps = defaultdict(list)
    decisions = defaultdict(list)
    store_low = low.store
    store_top = top.store

    def note_low(transition):
        for index, row in enumerate(transition.rows.tolist()):
            seen = {key: values[index].copy() for key, values in transition.observation.items()}
            steps[row].append((seen, transition.action[index].copy()))
        store_low(transition)

    def note_top(transition):
        for index, row in enumerate(transition.rows.tolist()):
            decision = Decision(
                begun=transition.observation["achieved_goal"][index].copy(),
                sent=transition.action[index].copy(),
                below=End(int(transition.below[index])),
                end=End(int(transition.end[index])),
                steps=steps.pop(row),
            )
            decisions[row].append(decision)
        store_top(transition)

    monkeypatch.setattr(low, "store", note_low)
    monkeypatch.setattr(top, "store", note_top)
    manager.run()
    return manager, decisions


def test_intervals_are_the_steps_of_each_decision(monkeypatch):
    """Heat-up, sub-goals reached early and real ends included; rows are out of phase."""
    manager, decisions = recorded(stack(heatup=60), monkeypatch)
    top, low = agents_of(manager)
    upper = top.memory.store
    lower = low.memory.store
    everything = [
        (row, number, each) for row, kept in decisions.items() for number, each in enumerate(kept)
    ]
    for row, number, each in everything:
        at = upper.positions_of(np.array([row]), np.array([number]))
        begin, end = (int(upper.read(name, at)[0]) for name in (LOW_BEGIN, LOW_END))
        assert end - begin == len(each.steps)
        where = lower.positions_of(np.full(len(each.steps), row), np.arange(begin, end))
        seen = [shown["observation"] for shown, _ in each.steps]
        done = [action for _, action in each.steps]
        np.testing.assert_array_equal(lower.read("/observations/observation", where), seen)
        np.testing.assert_array_equal(lower.read("/actions", where), done)
    ends = {each.below for *_, each in everything}
    assert len(everything) > 60
    assert len({len(each.steps) for *_, each in everything}) >= 4
    assert {End.HORIZON, End.GOAL} <= ends
    assert any(end & End.TERMINATED for end in ends)
    assert any(end & End.TRUNCATED for end in ends)
    assert len(set(upper.counts.tolist())) > 1  # some rows have made more decisions than others


def test_overwritten_steps_are_counted_and_their_sub_goals_left():
    manager = created(stack(low=low_agent(capacity=120)))
    manager.run()
    top, low = agents_of(manager)
    columns, interval = drawn(top, 300)
    # Rings of 40 steps: a decision is lost as soon as its first step is.
    lost = interval["begins"] < low.memory.store.counts[interval["rows"]] - 40
    assert 0 < lost.sum() < 300
    top.correction.metrics()
    steps = top.correction.steps_of(columns)
    np.testing.assert_array_equal(steps.kept, ~lost)
    corrected = top.correction.relabelled(steps)
    replaced = (corrected != steps.sent).any(axis=1)
    assert not replaced[lost].any()
    assert replaced[~lost].any()
    told = top.correction.metrics()
    assert told["train/subgoals_overwritten"] == lost.mean()
    assert told["train/subgoals_replaced"] == replaced.mean()
    assert 0 < told["train/subgoals_achieved"] <= told["train/subgoals_replaced"]
    assert top.correction.metrics() == {}


LINE = rl.GoalSpace(
    key="place", low=(-9.0,), high=(9.0,), threshold=(0.0,), relative=True, reach=(1.0,),
    observed="relative",
)  # fmt: skip


def on_a_line(goals=LINE, candidates=2):
    """A level below that walks 0.3 to the right in three steps, asked to go 1.0 to the left."""
    place = spaces.Box(-9, 9, (1,), np.float32)
    low = low_agent(learning=rl.LearningParameters(learning_starts=10), capacity=10).build(
        context({"place": place, **goals.shown}, spaces.Box(-2, 2, (1,), np.float32), num_envs=1)
    )
    for step in range(3):
        before, after = 2 + 0.1 * step, 2 + 0.1 * (step + 1)
        seen, then = ({"place": row(each), rl.GOAL_KEY: row(1 - each)} for each in (before, after))
        low.store(transition(seen, row(0.1), then, reward=0.0, truncated=step == 2))
    # It goes right where that leads nearer to what it is told, unless that is too far.
    low.learner.acting.outputs = lambda seen: np.where(
        (seen[rl.GOAL_KEY] > 0.05) & (seen[rl.GOAL_KEY] < 0.35), np.float32(0.1), np.float32(-0.1)
    )
    context_of = UnitContext(
        store=low.memory.store,
        rng=np.random.default_rng(0),
        seed=0,
        device=torch.device("cpu"),
        place=LevelPlace(
            below=LevelDescription(name="low", goal_space=goals, horizon=3), agent_below=low
        ),
        output_filter=None,
    )
    columns = {
        POSITIONS: torch.tensor([0]),
        ACTIONS: torch.tensor([[-1.0]]),
        LOW_BEGIN: torch.tensor([0]),
        LOW_END: torch.tensor([3]),
        "/observations/place": torch.tensor([[2.0]]),
    }
    return low, rl.SubGoalCorrectionParameters(candidates=candidates).build(context_of), columns


def row(*values):
    return np.array([values], np.float32)


def test_equally_likely_candidates_leave_the_sub_goal_as_it_was():
    low, correction, columns = on_a_line(candidates=10)
    low.learner.acting.outputs = lambda seen: np.zeros_like(seen[rl.GOAL_KEY])
    assert correction(columns, 1)[ACTIONS].tolist() == [[-1.0]]
    assert correction.metrics()["train/subgoals_replaced"] == 0.0


def test_goals_beyond_the_bounds_are_judged_where_they_were_clipped():
    """From 2.0, both -0.9 and -1.0 lead to a lowest bound of 1.5: they are the same goal."""
    low, correction, columns = on_a_line(replace(LINE, low=(1.5,)))
    low.learner.acting.outputs = lambda seen: seen[rl.GOAL_KEY]
    three = np.array([[[-1.0], [-0.9], [-0.4]]], np.float32)
    one, same, other = correction.log_likelihood(three, correction.steps_of(columns))[0]
    assert one == same
    assert one != other


def test_angles_are_judged_around_the_circle():
    """Left to go: 3.0 less 0.1 a step; a candidate 0.5 further is behind the half turn."""
    circle = replace(LINE, angles=(0,), reach=(4.0,))
    low, correction, columns = on_a_line(circle)
    shown = []
    low.learner.acting.outputs = lambda seen: (
        shown.append(seen[rl.GOAL_KEY].copy()) or seen[rl.GOAL_KEY] * 0
    )
    steps = replace(
        correction.steps_of(columns),
        observation={
            "place": np.zeros((1, 3, 1)),
            rl.GOAL_KEY: np.float32([[[3.0], [2.9], [2.8]]]),
        },
        last_goal=np.float32([[-3.0]]),
        sent=row(3.0),
    )
    correction.log_likelihood(np.array([[[3.0], [3.5]]], np.float32), steps)
    expected = [3.0, 2.9, 2.8, 3.5 - 2 * np.pi, 3.4 - 2 * np.pi, 3.3 - 2 * np.pi]
    np.testing.assert_allclose(shown[0][:, 0], expected, rtol=1e-6)
    # What was achieved is 3.0 - (-3.0), which is most of a turn.
    np.testing.assert_allclose(correction.candidates(steps)[:, 1], [[6 - 2 * np.pi]], 1e-6)


def test_batches_hold_the_corrected_sub_goals(ran):
    top, _ = agents_of(ran)
    memory = top.memory
    state = memory.state_dict()
    batch = memory.sample(64)
    memory.load_state_dict(state)
    plain = memory.store.read(ACTIONS, batch.position.numpy())
    columns = {
        path: torch.from_numpy(memory.store.read(path, batch.position.numpy()))
        for path in top.correction.inputs
        if path != POSITIONS
    }
    steps = top.correction.steps_of({POSITIONS: batch.position, **columns})
    corrected = top.correction.relabelled(steps)
    memory.load_state_dict(state)
    assert (corrected != plain).any()
    np.testing.assert_array_equal(plain, steps.sent)  # what is stored is not written to
    np.testing.assert_array_equal(batch.action.numpy(), corrected)
    assert not batch.extras  # nothing for the gradient step


def test_sub_goals_go_through_the_output_filter_and_back():
    filtered = top_agent(output_filter=rl.OutputFilter(action=(rl.LinearBoxToBoxMap(),)))
    manager = created(stack(filtered))
    manager.run()
    top, _ = agents_of(manager)
    actions = top.memory.sample(200).action.numpy()
    assert (np.abs(actions) <= 1 + 1e-6).all()
    assert np.abs(actions[:, 1]).max() > 0.5  # a quarter in the sub-goal's own units
    columns, _ = drawn(top, 200)
    begun = top.correction.steps_of(columns).observation[rl.GOAL_KEY][:, 0]
    inside = (np.abs(begun) > 0.01).all(axis=1)
    # Less than the reach where the bounds were nearer.
    ratio = begun[inside] / columns[ACTIONS].numpy()[inside]
    assert (ratio <= np.array((0.5, 0.25)) + 1e-3).all()
    np.testing.assert_allclose(np.median(ratio, axis=0), (0.5, 0.25), rtol=1e-3)


def test_the_level_below_need_not_see_where_it_is():
    """What is left to go is kept; so the places themselves may be hidden from its networks."""
    blind = low_agent(
        input_filter=rl.InputFilter(
            observation={"achieved_goal": (rl.ObservationClippingFilter(low=0.0, high=0.0),)}
        )
    )
    manager = created(stack(low=blind))
    manager.run()
    top, low = agents_of(manager)
    columns, interval = drawn(top, 100)
    steps = top.correction.steps_of(columns)
    assert not steps.observation["achieved_goal"].any()
    achieved = top.correction.candidates(steps)[:, 1]
    store = low.memory.store
    motion = [
        store.read(path, store.positions_of(interval["rows"], when))[:, :2]
        for path, when in (
            ("/observations/observation", interval["begins"]),
            ("/next_observations/observation", interval["ends"] - 1),
        )
    ]
    moved = np.clip(motion[1] - motion[0], (-0.5, -0.25), (0.5, 0.25))
    np.testing.assert_allclose(achieved, moved, atol=1e-6)


def test_three_levels_and_sac_below():
    """A HIRO level is itself a level below that can be corrected by."""
    params = stack()
    middle = rl.LevelParameters(name="middle", agent=top_agent(), goal_space=GOALS, horizon=3)
    low = replace(params.levels[1], agent=rl.SACAgentParameters(
        **{key: value for key, value in SETTINGS.items() if key != "exploration"}
    ))  # fmt: skip
    manager = created(replace(params, levels=(params.levels[0], middle, low)))
    records = list(manager.improve())
    learned = {r.level: r.scalars for r in records if r.kind == "train"}
    assert set(learned) == {"top", "middle", "low"}
    for level in ("top", "middle"):
        assert 0 < learned[level]["train/subgoals_replaced"] <= 1
        assert learned[level]["train/subgoals_overwritten"] == 0
    assert "train/subgoals_replaced" not in learned["low"]


def test_without_correction_it_is_td3():
    plain = rl.TD3AgentParameters(
        **{field: getattr(top_agent(), field) for field in (*SETTINGS, "memory", "input_filter")}
    )
    states = []
    for top in (plain, top_agent(correction=None)):
        manager = created(stack(top))
        manager.run()
        states.append(manager.state_dict()["agents"]["top"])
        manager.close()
    assert_same_state(*states)


def test_hiro_stopped_in_mid_sub_episode_resumes_bit_for_bit(tmp_path):
    """In heat-up and while learning."""

    def check(whole, _):
        assert whole.graph.agents["top"].training_steps > 0

    build = partial(created, stack())
    assert_resumes(build, tmp_path, after(36, amid), after(250, amid), check=check)


def test_hiro_frozen_level_below_without_correction_runs():
    manager = created(stack(top_agent(correction=None), frozen=True))
    manager.run()
