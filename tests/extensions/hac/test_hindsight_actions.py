"""Sub-goals in hindsight and tests of them, against every way there is to show a decision."""

from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.architectures.gradient_step import mapped
from coach_rl.core.agents import LevelPlace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import End
from tests.agents.decisions import transition
from tests.memories import replay_worlds

GOAL = rl.GoalSpace(low=(-50.0,), high=(50.0,), threshold=(0.4,), elements=(0,))
SUB_GOAL = rl.GoalSpace(low=(-50.0, -5.0), high=(50.0, 5.0), threshold=(0.1, 0.1))
SEEN = spaces.Dict(
    {
        "observation": spaces.Box(-np.inf, np.inf, (2,), np.float32),
        "desired_goal": spaces.Box(-50, 50, (1,), np.float32),
    }
)
DISCOUNT, HORIZON = 0.5, 7
STILL = rl.ScriptedAgentParameters(policy="still")
BELOW = (
    End.GOAL,
    End.HORIZON,
    End.HORIZON | End.OUTER,
    End.HORIZON | End.TRUNCATED,
    End.TERMINATED,
    End.GOAL | End.HORIZON,
)


def level(name, goal_space, horizon=HORIZON):
    return rl.LevelParameters(name=name, agent=STILL, goal_space=goal_space, horizon=horizon)


DENSE = replace(GOAL, reward="dense")


def place(sub_goal=SUB_GOAL, horizon=HORIZON, goal=GOAL):
    return LevelPlace(level=level("top", goal, horizon), below=level("low", sub_goal))


def build(*, ratio=3.0, at=None, sub_goal=SUB_GOAL, **actions):
    return replay_worlds.build(
        observed=SEEN,
        acted=sub_goal.space,
        discount=DISCOUNT,
        place=at or place(sub_goal),
        capacity=400,
        relabelling=rl.HindsightParameters(ratio=ratio, goal_ends_episode=True),
        parts=(rl.HindsightActionParameters(**actions),),
    )


def decisions(memory, seed=0, ticks=60):
    """Fill a memory with decisions that move by whole numbers; each of them as a plain dict."""
    rng = np.random.default_rng(seed)
    here, wanted = np.zeros(2), rng.integers(-3, 4, 2).astype(float)
    episode, kept = np.zeros(2, int), []
    for time in range(ticks):
        after = here + rng.integers(1, 3, 2)
        asked = rng.integers(-9, 9, (2, 2)).astype(np.float32)
        below = np.array([rng.choice(BELOW) for _ in range(2)], np.uint8)
        tested = rng.random(2) < 0.5
        reached = np.abs(after - wanted) <= 0.4
        cut = ~reached & (rng.random(2) < 0.2)
        memory.add(
            transition(
                seen(here, time, wanted),
                asked,
                seen(after, time + 1, wanted),
                reward=reached - 1.0,
                terminated=reached,
                truncated=cut,
                below=below,
                tested=tested,
            )
        )
        for row in range(2):
            kept.append(
                {
                    "row": row,
                    "time": time,
                    "episode": (row, int(episode[row])),
                    "before": (here[row], row + time / 1000),
                    "after": (after[row], row + (time + 1) / 1000),
                    "asked": tuple(asked[row]),
                    "below": int(below[row]),
                    "tested": bool(tested[row]),
                    "wanted": wanted[row],
                    "terminated": bool(reached[row]),
                }
            )
        ended = reached | cut
        episode += ended
        here = np.where(ended, 0.0, after)
        wanted = np.where(ended, rng.integers(-3, 4, 2), wanted)
    return kept


def seen(here, time, wanted):
    """Where a row is, and a second number that tells rows and times apart."""
    return {
        "observation": np.stack([here, np.arange(2) + time / 1000], axis=1).astype(np.float32),
        "desired_goal": wanted[:, None].astype(np.float32),
    }


def ways(one, all_of_them, *, ratio, penalty, sub_goal):
    """Every (action, goal, reward, discount) that a decision may be shown as."""
    before, after = np.float32(one["before"]), np.float32(one["after"])
    achieved = after - before if sub_goal.relative else after
    achieved = np.clip(achieved, sub_goal.space.low, sub_goal.space.high)
    missed = not one["below"] & End.GOAL
    actions = {rounded(achieved)} if missed else {rounded(one["asked"])}
    later = [
        other["after"][0]
        for other in all_of_them
        if other["episode"] == one["episode"] and other["time"] >= one["time"]
    ]
    shown = set()
    for goal in {one["wanted"], *(later if ratio else ())}:
        reached = abs(after[0] - goal) <= 0.4
        for action in actions:
            shown.add((action, float(goal), float(reached - 1), 0.0 if reached else DISCOUNT))
    if one["tested"] and one["below"] == End.HORIZON:
        shown.add((rounded(one["asked"]), float(one["wanted"]), penalty, 0.0))
    return shown


def rounded(values):
    return tuple(round(float(value), 4) for value in values)


def drawn(memory, kept, size=6000):
    """What a large batch shows, with the decision each sample comes from."""
    batch = mapped(np.asarray, memory.sample(size))
    by_start = {rounded(one["before"]): one for one in kept}
    for i in range(size):
        one = by_start[rounded(batch.observation["observation"][i])]
        goals = batch.observation["desired_goal"][i], batch.next_observation["desired_goal"][i]
        np.testing.assert_array_equal(*goals)
        yield (
            one,
            (
                rounded(batch.action[i]),
                float(goals[0][0]),
                float(batch.reward[i]),
                float(batch.discount[i]),
            ),
        )


@pytest.mark.parametrize(
    ("ratio", "penalty", "sub_goal"),
    [
        (3.0, None, SUB_GOAL),
        (0.0, -4.0, SUB_GOAL),
        (3.0, None, replace(SUB_GOAL, relative=True, reach=(1.5, 5.0))),
    ],
    ids=["usual", "no goals in hindsight", "relative"],
)
def test_hindsight_actions_all_variants_are_sampled(ratio, penalty, sub_goal):
    memory = build(ratio=ratio, sub_goal=sub_goal, penalty=penalty)
    kept = decisions(memory)
    rules = {
        "ratio": ratio,
        "penalty": -float(HORIZON) if penalty is None else penalty,
        "sub_goal": sub_goal,
    }
    allowed = {(one["row"], one["time"]): ways(one, kept, **rules) for one in kept}
    found = {key: set() for key in allowed}
    for one, shown in drawn(memory, kept):
        key = (one["row"], one["time"])
        assert shown in allowed[key], one
        found[key].add(shown)
    # 50 draws of each decision find nearly every way, tests with their penalty among them.
    ways_found = sum(len(each) for each in found.values())
    assert ways_found > 0.9 * sum(len(each) for each in allowed.values())
    assert any(reward == rules["penalty"] for each in found.values() for *_, reward, _ in each)


def test_hindsight_actions_missed_test_share():
    memory = build(ratio=3.0)
    kept = decisions(memory)
    missed = [
        reward == -HORIZON
        for one, (*_, reward, _) in drawn(memory, kept, size=20_000)
        if one["tested"] and one["below"] == End.HORIZON
    ]
    assert len(missed) > 1000
    assert abs(np.mean(missed) - 1 / 5) < 0.03


def test_hindsight_actions_stored_actions_are_unchanged():
    memory = build()
    kept = decisions(memory)
    for _ in range(20):
        memory.sample(64)
    shown = memory.trajectories()
    for row in range(2):
        asked = [one["asked"] for one in kept if one["row"] == row]
        np.testing.assert_array_equal(shown["/agents/agent/actions"][row][: len(asked)], asked)
    assert len(memory) == len(kept)


def test_hindsight_actions_dense_goals_use_given_penalty():
    _, actions = build(at=place(goal=DENSE), penalty=-900.0).layout.parts
    assert actions.penalty == -900.0


def test_hindsight_actions_timed_sub_goal_has_elapsed_time():
    timed = rl.TimedGoalSpace.of(SUB_GOAL, longest=9)
    memory = build(ratio=0.0, sub_goal=timed)
    for below in (End.HORIZON, End.GOAL, End.OUTER):
        memory.add(
            transition(
                {key: each[:1] for key, each in seen(np.zeros(2), 0, np.ones(2)).items()},
                np.array([[4.0, 2.0, 6.5]], np.float32),
                {key: each[:1] for key, each in seen(np.full(2, 3.0), 0, np.ones(2)).items()},
                reward=-1.0,
                duration=4 if below == End.OUTER else 7,
                below=np.array([below], np.uint8),
                tested=np.array([False]),
            )
        )
    actions = {rounded(action) for action in memory.sample(200).action.tolist()}
    # missed; reached, shown as it was asked for; given up after 4 steps
    assert actions == {(3, 0, 6.5), (4, 2, 6.5), (3, 0, 3.5)}


@pytest.mark.parametrize("goal_ends_episode", [True, False])
def test_hindsight_failure_is_kept_at_missed_goals_and_dropped_at_reached_ones(goal_ends_episode):
    parts = (rl.StopOnFailure(),)
    top = replace(level("top", GOAL), parts=parts, goal_is_terminal=goal_ends_episode)
    memory = replay_worlds.build(
        num_envs=1,
        observed=SEEN,
        acted=SUB_GOAL.space,
        discount=DISCOUNT,
        place=LevelPlace(level=top, below=level("low", SUB_GOAL)),
        relabelling=rl.HindsightParameters(
            ratio=1e9, strategy="episode", goal_ends_episode=goal_ends_episode
        ),
    )
    places = ((0.0, 1.0), (1.0, 2.0), (2.0, 5.0))  # the last sub-goal is missed
    for number, (before, after) in enumerate(places):
        is_last = number == 2
        memory.add(
            transition(
                _one(before),
                np.zeros((1, 2), np.float32),
                _one(after),
                reward=-HORIZON if is_last else -1.0,
                terminated=is_last,
                below=np.array([End.HORIZON if is_last else End.GOAL], np.uint8),
            )
        )
    batch = mapped(np.asarray, memory.sample(300))
    seen_now = batch.observation
    before, wanted = seen_now["observation"][:, 0], seen_now["desired_goal"][:, 0]
    shown = set(zip(before, wanted, batch.reward, batch.discount, strict=True))
    end = 0 if goal_ends_episode else DISCOUNT
    assert {each for each in shown if each[0] == 2} == {
        (2, 5, 0, end),  # reached where it failed
        (2, 1, -HORIZON, 0),
        (2, 2, -HORIZON, 0),
    }
    assert {each for each in shown if each[0] == 1} == {
        (1, 1, -1, DISCOUNT),
        (1, 2, 0, end),
        (1, 5, -1, DISCOUNT),
    }


def _one(place):
    return {
        "observation": np.array([[place, 0.0]], np.float32),
        "desired_goal": np.array([[9.0]], np.float32),
    }


@parameter_class
class OwnTime(rl.TimedGoalSpace):
    """Timed goals whose time does not come from above: the level above sends the goal alone."""

    @property
    def space(self):
        box = super().space
        return spaces.Box(box.low[:-1], box.high[:-1])


@parameter_class
class OwnTimeInHindsight(OwnTime):
    def asked_in_hindsight(self, observation, next_observation, duration):
        return super().asked_in_hindsight(observation, next_observation, duration)[:, :-1]


@parameter_class
class BadHindsight(OwnTime):
    def asked_in_hindsight(self, observation, next_observation, duration):
        return super().asked_in_hindsight(observation, next_observation, duration)


OWN_TIME = {"low": SUB_GOAL.low, "high": SUB_GOAL.high, "threshold": (0.1, 0.1), "longest": 9}


def test_hindsight_actions_custom_inverse_is_used():
    memory = build(ratio=0.0, sub_goal=OwnTimeInHindsight(**OWN_TIME))
    kept = decisions(memory)
    kept = [one for one in kept if abs(one["after"][0]) <= 50]
    missed = {rounded(one["after"]) for one in kept if not one["below"] & End.GOAL}
    shown = {rounded(action) for action in memory.sample(4_000).action.tolist()}
    assert missed
    assert missed <= shown
