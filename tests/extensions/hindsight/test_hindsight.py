import warnings
from dataclasses import fields, replace

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.architectures.gradient_step import mapped
from coach_rl.core.agents import ALONE
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.extensions.hindsight.hindsight import goal_steps
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.memories import Stored
from tests.agents.decisions import transition
from tests.memories.replay_worlds import build

OBSERVED = spaces.Dict(
    {
        "observation": spaces.Box(-np.inf, np.inf, (2,), np.float64),
        "achieved_goal": spaces.Box(-np.inf, np.inf, (2,), np.float64),
        "desired_goal": spaces.Box(-np.inf, np.inf, (2,), np.float64),
    }
)
GOAL = rl.GoalSpace(low=(0.0, 0.0), high=(1e6, 1e6), threshold=(0.5, 0.5), key="achieved_goal")
WANTED = -7.0
"""What every transition wanted first; never achieved."""


class Walk:
    """Rows whose achieved goal is (row, number of the state), both exact in float32.

    Numbers grow by one with each state; a new episode begins two behind the last transition.
    """

    def __init__(self, num_rows, seed, end_chance=0.2):
        self.rng = np.random.default_rng(seed)
        self.end_chance = end_chance
        self.state = np.arange(num_rows) * 10_000

    def step(self, rows):
        rows = np.asarray(rows, np.int64)
        now = self.state[rows]
        kind = self.rng.random(len(rows))
        ended = kind < self.end_chance
        terminated = kind < self.end_chance / 2
        self.state[rows] += 1 + ended
        return transition(
            self.see(rows, now),
            now[:, None].astype(np.float32),
            self.see(rows, now + 1),
            rows=rows,
            reward=-1.0,
            terminated=terminated,
            truncated=ended & ~terminated,
        )

    def see(self, rows, numbers):
        place = np.stack([rows, numbers], axis=1).astype(np.float64)
        return {
            "observation": place,
            "achieved_goal": place.copy(),
            "desired_goal": np.full((len(rows), 2), WANTED),
        }


def with_hindsight(*, strategy="future", ratio=4.0, goal=GOAL, goal_ends_episode=False, **rest):
    hindsight = rl.HindsightParameters(
        goal=goal, strategy=strategy, ratio=ratio, goal_ends_episode=goal_ends_episode
    )
    return build(**{"observed": OBSERVED, **rest}, relabelling=hindsight)


def arrays(batch):
    return mapped(np.asarray, batch)


def walked(memory, ticks=60, num_rows=2, **rest):
    walk = Walk(num_rows, 0, **rest)
    for _ in range(ticks):
        memory.add(walk.step(np.arange(num_rows)))
    return memory


@pytest.mark.parametrize(("ratio", "share"), [(0.0, 0.0), (1.0, 0.5), (4.0, 0.8)])
def test_hindsight_ratio_sets_relabelled_share(ratio, share):
    batch = walked(with_hindsight(ratio=ratio)).sample(10_000)
    is_new = (batch.observation["desired_goal"][:, 0] != WANTED).double().mean().item()
    assert is_new == pytest.approx(share, abs=0.015)  # three deviations of 0.005


def test_hindsight_future_goals_are_uniform():
    memory = with_hindsight(num_envs=1, ratio=1e9)
    walk = Walk(1, 0, end_chance=0.0)
    for _ in range(10):
        memory.add(walk.step([0]))
    batch = arrays(memory.sample(20_000))
    ahead = (batch.observation["desired_goal"][:, 1] - batch.observation["observation"][:, 1])[
        batch.observation["observation"][:, 1] == 4
    ].astype(int)
    counts = np.bincount(ahead)
    assert counts[0] == 0
    assert len(counts) == 7  # states 5 to 10, the newest state of the open episode
    expected = len(ahead) / 6
    assert ((counts[1:] - expected) ** 2 / expected).sum() < 21  # 5 degrees, once in 1,000


def test_goal_steps_by_hand():
    steps, first, end = np.array([5, 5]), np.array([3, 3]), np.array([9, 9])
    uniform = np.array([0.0, 0.999])
    assert goal_steps("final", steps, first, end, uniform).tolist() == [8, 8]
    assert goal_steps("future", steps, first, end, uniform).tolist() == [5, 8]
    assert goal_steps("episode", steps, first, end, uniform).tolist() == [3, 8]


@pytest.mark.parametrize("strategy", ["future", "final", "episode", "random"])
def test_as_shown_goals_are_distributed_as_in_batches(strategy):
    memory = walked(with_hindsight(strategy=strategy, ratio=3.0), ticks=200)
    batch = memory.sample(6_000).observation["desired_goal"].numpy()
    own = {"observation": np.ones((6_000, 2)), "desired_goal": np.full((6_000, 2), WANTED)}
    shown = memory.as_shown(own)
    assert (own["desired_goal"] == WANTED).all(), "not written to"
    assert shown["observation"] is own["observation"]
    goals = shown["desired_goal"]
    for found in (goals, batch):
        assert (found == WANTED).all(axis=1).mean() == pytest.approx(0.25, abs=0.02)
    relabelled, expected = (each[each[:, 1] != WANTED] for each in (goals, batch))
    assert (relabelled[:, 0] == 0).mean() == pytest.approx(0.5, abs=0.05)
    # how far along its row each lies: the same distribution but for chance (Kolmogorov-Smirnov)
    along = [np.sort(each[each[:, 0] == 0][:, 1]) for each in (relabelled, expected)]
    places = np.unique(np.concatenate(along))
    shares = [np.searchsorted(each, places, side="right") / len(each) for each in along]
    assert np.abs(shares[0] - shares[1]).max() < 0.06


def shown_relative(transition):
    """The same transition, seen by a level that is shown how far away its goals are."""

    def show(seen):
        return {**seen, "desired_goal": seen["desired_goal"] - seen["achieved_goal"]}

    return replace(
        transition,
        observation=show(transition.observation),
        next_observation=show(transition.next_observation),
    )


def test_as_shown_relative_goals_match_batches():
    goal = replace(GOAL, low=(WANTED, WANTED), observed="relative")
    memory, walk = with_hindsight(goal=goal, ratio=1e9), Walk(2, 0, end_chance=0.1)
    for _ in range(200):
        memory.add(shown_relative(walk.step(np.arange(2))))
    batch = memory.sample(4_000).next_observation["desired_goal"].numpy()
    shown = memory.as_shown({"desired_goal": np.full((4_000, 2), WANTED)})["desired_goal"]
    assert (shown[:, 0] == 0).all()
    assert shown[:, 1].min() == batch[:, 1].min() == 0
    assert shown[:, 1].mean() == pytest.approx(batch[:, 1].mean(), rel=0.1)


@pytest.mark.parametrize(
    "memory", [build(observed=OBSERVED), with_hindsight(ratio=0.0)], ids=["none", "ratio 0"]
)
def test_as_shown_no_hindsight_is_identity(memory):
    walked(memory)
    before = memory.state_dict()["generator"]
    own = {"desired_goal": np.full((5, 2), WANTED)}
    assert memory.as_shown(own) is own
    assert_same_state(memory.state_dict()["generator"], before)


def test_hindsight_angles_are_wrapped_into_bounds():
    pi = np.pi
    turning = rl.GoalSpace(
        low=(-pi, -9.0), high=(pi, 9.0), threshold=(0.1, 0.1), key="achieved_goal", angles=(0,)
    )
    hindsight = rl.HindsightParameters(goal=turning).at(ALONE)
    achieved = {"achieved_goal": np.array([[7.0, 7.0], [-20.0, -20.0], [3.0, 3.0]])}
    wanted = {"desired_goal": np.array([[7.0 - 2 * pi, 7.0], [0.0, 0.0], [3.0, 3.0]])}
    kept = hindsight.kept(Stored(wanted, achieved, {}, None, None))
    shown = [[7.0 - 2 * pi, 7.0], [6 * pi - 20.0, -20.0], [3.0, 3.0]]
    np.testing.assert_allclose(kept["/achieved_goals"], shown)
    assert kept["/reached"].tolist() == [True, False, True]


@parameter_class
class Halfway(rl.GoalSpace):
    """Half of what two observation keys show together."""

    def achieved(self, observation):
        return (super().achieved(observation) + observation["observation"]) / 4


@parameter_class
class Walled(rl.GoalSpace):
    """Worth what is left of 100, and over where the second element is a multiple of 3."""

    def judge(self, goal, achieved):
        verdict = super().judge(goal, achieved)
        is_final = verdict.reached | (achieved[:, 1] % 3 == 0)
        return verdict._replace(reward=100.0 - verdict.difference[:, 1], is_final=is_final)


def as_own(goal, kind, **changes):
    return kind(**{each.name: getattr(goal, each.name) for each in fields(rl.GoalSpace)} | changes)


@pytest.mark.parametrize("observed", ["absolute", "relative"])
def test_hindsight_custom_achieved_is_computed_once(observed):
    goal = as_own(GOAL, Halfway, low=(WANTED, WANTED), observed=observed)
    memory = walked(with_hindsight(goal=goal, ratio=1e9, strategy="final", num_envs=2))
    batch = arrays(memory.sample(2_000))
    before, after = (
        each["observation"] / 2 for each in (batch.observation, batch.next_observation)
    )
    wanted = batch.observation["desired_goal"] + (before if observed == "relative" else 0)
    shown_after = batch.next_observation["desired_goal"] + (after if observed == "relative" else 0)
    np.testing.assert_array_equal(shown_after, wanted)
    np.testing.assert_array_equal(wanted[:, 0], before[:, 0])  # half of the row, once
    assert (wanted[:, 1] >= after[:, 1]).all()
    reached = (np.abs(after - wanted) <= 0.5).all(axis=1)
    assert 0.1 < reached.mean() < 0.9
    np.testing.assert_array_equal(batch.reward, reached - 1.0)


def test_hindsight_custom_judge_sets_rewards_and_ends():
    goal = as_own(GOAL, Walled)
    memory = with_hindsight(goal=goal, ratio=1e9, strategy="final", goal_ends_episode=True)
    batch = arrays(walked(memory, end_chance=0.0).sample(2_000))
    after, wanted = batch.next_observation["observation"], batch.observation["desired_goal"]
    np.testing.assert_array_equal(batch.reward, 100.0 - (after - wanted)[:, 1])
    is_over = (after[:, 1] % 3 == 0) | (np.abs(after - wanted) <= 0.5).all(axis=1)
    np.testing.assert_array_equal(batch.discount, np.where(is_over, 0.0, 0.5))


@parameter_class
class JudgesObservations(rl.GoalSpace):
    def verdict(self, goal, observation):
        return super().verdict(goal, observation)


@parameter_class
class ShowsHalf(rl.GoalSpace):
    def show(self, goal, observation):
        return {"desired_goal": goal / 2}


@parameter_class
class Progress(rl.GoalSpace):
    """Judged by what was achieved before a decision, too."""

    uses_before = True


@parameter_class
class LearnedProgress(Progress):
    """The same of goals that learn, whose hindsight keeps observations before and after."""

    learns = True


def test_hindsight_goals_judged_by_what_was_achieved_before_need_to_learn():
    refused, *allowed = (
        rl.HindsightParameters(goal=as_own(GOAL, kind)).at(ALONE)
        for kind in (Progress, LearnedProgress, Halfway, rl.GoalSpace)
    )
    for each in allowed:
        each.check(OBSERVED)
    with pytest.raises(rl.ConfigurationError, match=r"Progress\.judge .* achieved before them"):
        refused.check(OBSERVED)


@pytest.mark.parametrize("far", [0.0, 5.5e6, -5.5e6])
def test_hindsight_achieved_goals_too_far_from_0_for_float32_warn_once(far):
    endless = (-np.inf, np.inf)
    goal = replace(GOAL, low=endless[:1] * 2, high=endless[1:] * 2, threshold=(0.05, 0.05))
    memory, walk = with_hindsight(goal=goal), Walk(2, seed=0)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for _ in range(3):
            step = walk.step([0, 1])
            place = step.next_observation["achieved_goal"] + far + 0.2
            seen = {**step.next_observation, "achieved_goal": place}
            memory.add(replace(step, next_observation=seen))
    messages = [str(each.message) for each in warned]
    assert len(messages) == (far != 0)
    assert all("float32 numbers are 0.5 apart near the goal" in each for each in messages)
