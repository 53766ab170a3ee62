"""Goals sampled from data: what they are, their shares, rewards and ends."""

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.errors import ConfigurationError, ParameterError
from coach_rl.core.goals import GoalSpace
from coach_rl.extensions.goals_from_data.data_goals import (
    ACTOR_GOAL,
    FUTURE,
    drawn_goals,
    trajectory_steps,
)
from coach_rl.extensions.testing.states import assert_same_state
from tests.agents.decisions import transition
from tests.memories.replay_worlds import build

OBSERVED = spaces.Dict(
    {
        "observation": spaces.Box(-np.inf, np.inf, (1,), np.float64),
        "achieved_goal": spaces.Box(-np.inf, np.inf, (2,), np.float64),
        "desired_goal": spaces.Box(-np.inf, np.inf, (2,), np.float64),
    }
)
GOAL = GoalSpace(low=(0.0, 0.0), high=(1e6, 1e6), threshold=(0.5, 0.5), key="achieved_goal")
LENGTHS = (5, 12, 1, 30)
"""Of the episodes of the only row."""
NEXT = np.array([0, 1])
"""What a transition adds to the place."""
CURRENT = rl.GoalShares(current=1.0, trajectory=0.0, random=0.0)


def walk(lengths=LENGTHS, *, wanted=-7.0, terminated=False, durations=None):
    """Episodes in which step t of episode e leads from (e, t) to (e, t + 1)."""
    for episode, length in enumerate(lengths):
        for step in range(length):
            place = np.array([[episode, step]], np.float64)
            after = place + NEXT
            is_last = step == length - 1
            seen = {"observation": place[:, 1:], "desired_goal": np.full((1, 2), wanted)}
            yield transition(
                {**seen, "achieved_goal": place},
                np.float32([[step]]),
                {**seen, "achieved_goal": after},
                reward=5.0,
                terminated=is_last and terminated,
                truncated=is_last and not terminated,
                duration=1 if durations is None else durations[step],
            )


def filled(*, lengths=LENGTHS, discount=0.9, walked=None, **settings):
    part = rl.DataGoalsParameters(goal=GOAL, discount=discount, **settings)
    memory = build(num_envs=1, observed=OBSERVED, parts=(part,), discount=discount)
    for stored in walked or walk(lengths):
        memory.add(stored)
    return memory


def sampled(memory, size=4000):
    batch = memory.sample(size)
    here = batch.observation["achieved_goal"].numpy()
    goal = batch.observation["desired_goal"].numpy()
    return batch, here, goal


def test_goals_are_achieved_in_the_shares_that_were_given():
    shares = rl.GoalShares(current=0.3, trajectory=0.0, random=0.7)
    _, here, goal = sampled(filled(value=shares))
    is_current = (goal == here + NEXT).all(axis=1)
    # By chance a random goal is the current one in one of 48 cases.
    assert abs(is_current.mean() - (0.3 + 0.7 / 48)) < 0.04
    others = goal[~is_current]
    share = [(others[:, 0] == episode).mean() for episode in range(4)]
    np.testing.assert_allclose(share, np.array(LENGTHS) / 48, atol=0.05)


def test_uniform_goals_are_anywhere_in_the_rest_of_the_trajectory():
    _, here, goal = sampled(filled(value=FUTURE))
    assert (goal[:, 0] == here[:, 0]).all()
    ahead = goal[:, 1] - here[:, 1]
    left = np.array(LENGTHS)[here[:, 0].astype(int)] - here[:, 1]
    assert ((ahead >= 1) & (ahead <= left)).all()
    first = ahead[(here == [3, 0]).all(axis=1)]
    assert len(first) > 40
    assert first.max() > 20
    assert abs(first.mean() - 15.5) < 5


def test_geometric_steps_have_the_discount_as_chance_of_each_further_one():
    uniform = np.random.default_rng(0).random(20_000)
    steps = trajectory_steps(
        np.zeros(20_000, np.int64), np.full(20_000, 1_000), uniform, discount=0.8
    )
    share = np.bincount(steps)[:5] / 20_000
    np.testing.assert_allclose(share, 0.2 * 0.8 ** np.arange(5), atol=0.01)
    cut = trajectory_steps(np.full(3, 7), np.full(3, 9), np.array([0.0, 0.3, 0.999]), 0.8)
    assert cut.tolist() == [7, 8, 8]


def test_rewards_and_ends_are_those_of_the_goals():
    batch, here, goal = sampled(filled())
    reached = (np.abs(here + NEXT - goal) <= 0.5).all(axis=1)
    assert 0.2 < reached.mean() < 0.5
    np.testing.assert_array_equal(batch.reward.numpy(), reached - 1.0)
    np.testing.assert_array_equal(batch.discount.numpy(), np.where(reached, 0, np.float32(0.9)))
    shown = batch.next_observation["desired_goal"].numpy()
    np.testing.assert_array_equal(shown, goal)


def test_an_end_at_the_stored_goal_is_none_for_other_goals():
    walked = list(walk((4, 4), terminated=True, wanted=4.0))
    for stored in walked[:4]:  # the first episode ends at its goal, (4, 4), the second doesn't
        for seen in (stored.observation, stored.next_observation):
            seen["achieved_goal"][:, 0] = 4.0
    batch, here, _ = sampled(filled(walked=walked))
    last = here[:, 1] == 3
    reached = batch.reward.numpy() == 0
    at_goal = last & (here[:, 0] == 4) & ~reached
    elsewhere = last & (here[:, 0] == 1) & ~reached
    assert at_goal.any()
    assert elsewhere.any()
    assert (batch.discount.numpy()[at_goal] == np.float32(0.9)).all()
    assert (batch.discount.numpy()[elsewhere] == 0).all()


def test_policies_have_goals_of_their_own():
    batch, here, goal = sampled(filled(value=CURRENT, actor=FUTURE))
    wanted = batch.extras[ACTOR_GOAL].numpy()
    assert (goal == here + NEXT).all()
    assert (wanted[:, 0] == here[:, 0]).all()
    assert (wanted[:, 1] > here[:, 1] + 1).any()


def test_statistics_see_achieved_goals_in_the_place_of_stored_ones():
    memory = filled()
    before = memory.state_dict()["generator"]
    here = np.array([[3.0, 4.0], [0.0, 1.0]])
    own = {"observation": here[:, 1:], "achieved_goal": here, "desired_goal": np.full((2, 2), -7.0)}
    shown = memory.as_shown(own)
    np.testing.assert_array_equal(shown["desired_goal"], here)
    assert shown["observation"] is own["observation"]
    assert (own["desired_goal"] == -7).all(), "not written to"
    assert_same_state(memory.state_dict()["generator"], before)


@pytest.mark.parametrize("ahead", [1, 4, 100])
def test_goals_ahead_are_achieved_so_many_steps_later_or_at_the_end(ahead):
    batch, here, _ = sampled(filled(actor_ahead=ahead))
    wanted = batch.extras[ACTOR_GOAL].numpy()
    lengths = np.array(LENGTHS)[here[:, 0].astype(int)]
    np.testing.assert_array_equal(wanted[:, 1], np.minimum(here[:, 1] + ahead, lengths))


def test_goals_ahead_count_simulator_steps():
    """Decisions of 3, 1, 2, 4 steps: 4 steps ahead of the first are 2 decisions, of the last 1."""
    memory = filled(actor_ahead=4, walked=walk((4,), durations=[3, 1, 2, 4]))
    batch, here, _ = sampled(memory, 200)
    ends = batch.extras[ACTOR_GOAL].numpy()[:, 1]
    assert {int(t): int(end) for t, end in zip(here[:, 1], ends, strict=True)} == {
        0: 2,
        1: 4,
        2: 4,
        3: 4,
    }


def test_goals_of_overwritten_trajectories_are_not_drawn():
    part = rl.DataGoalsParameters(goal=GOAL, discount=0.9)
    memory = build(num_envs=1, observed=OBSERVED, parts=(part,), discount=0.9, capacity=10)
    for stored in walk((30,)):
        memory.add(stored)
    positions = memory.store.draw(np.random.default_rng(0), 300)
    rng = np.random.default_rng(1)
    source = drawn_goals(rl.GoalShares(), positions, memory.store, rng, 0.9)
    assert memory.store.steps_of(source).min() >= 20


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        ({"goal": None}, ConfigurationError, "goal is None"),
        (
            {"goal": GoalSpace(low=(0.0,), high=(1.0,), threshold=(0.1,), relative=True)},
            ConfigurationError,
            "must have absolute goals",
        ),
        (
            {"goal": GoalSpace(low=(0.0,), high=(1.0,), threshold=(0.1,), reward=len)},
            ConfigurationError,
            "sparse or dense reward",
        ),
    ],
)
def test_goals_that_do_not_fit_are_refused(settings, error, message):
    with pytest.raises(error, match=message):
        build(observed=OBSERVED, parts=(rl.DataGoalsParameters(**settings),))


def test_shares_and_memories_that_do_not_fit_are_refused():
    with pytest.raises(ParameterError, match=r"must add up to 1, got 1\.5"):
        rl.GoalShares(current=1.0, trajectory=0.5, random=0.0)
    with pytest.raises(ParameterError, match="geometric steps ahead would never end"):
        rl.DataGoalsParameters(goal=GOAL, discount=1.0)
    part = rl.DataGoalsParameters(goal=GOAL)
    with pytest.raises(ParameterError, match=r"leave out n_step \(3\)"):
        build(observed=OBSERVED, parts=(part,), n_step=3)
    memory = build(num_envs=1, observed=OBSERVED, parts=(part,), discount=0.5)
    for stored in walk():
        memory.add(stored)
    with pytest.raises(ConfigurationError, match=r"is 0\.99, and the agent discounts by 0\.5"):
        memory.sample(10)
