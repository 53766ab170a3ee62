"""Decisions for sub-goals that are cut from trajectories."""

import numpy as np
import pytest
from gymnasium import spaces

import coach_rl as rl
from coach_rl.core.agents import LevelPlace
from coach_rl.core.errors import ConfigurationError
from coach_rl.core.goals import GoalSpace
from coach_rl.core.levels import LevelDescription
from tests.agents.decisions import transition
from tests.memories import replay_worlds

LENGTHS = (5, 12, 1, 30)
OBSERVED = spaces.Dict(
    {
        "observation": spaces.Box(-np.inf, np.inf, (2,), np.float64),
        "desired_goal": spaces.Box(-np.inf, np.inf, (1,), np.float64),
    }
)
GOAL = GoalSpace(low=(0.0,), high=(1e6,), threshold=(0.5,), elements=(1,))
BELOW = GoalSpace(low=(0.0, 0.0), high=(100.0, 100.0), threshold=(0.5, 0.5))


def place(goal=GOAL, below=BELOW):
    level = LevelDescription(name="top", goal_space=goal)
    return LevelPlace(level=level, below=LevelDescription(name="low", goal_space=below))


def built(where, **settings):
    part = rl.SubGoalsFromDataParameters(**settings)
    kept = {"observed": OBSERVED, "acted": BELOW.space}
    return replay_worlds.build(num_envs=1, discount=1.0, place=where, parts=(part,), **kept)


def filled(*, duration=1, **settings):
    """Step t of episode e leads from (e, t) to (e, t + 1)."""
    memory = built(place(), **settings)
    for episode, length in enumerate(LENGTHS):
        for step in range(length):
            here = np.array([[episode, step]], np.float64)
            after = np.array([[episode, step + 1]], np.float64)
            goal = np.full((1, 1), -7.0)
            memory.add(
                transition(
                    {"observation": here, "desired_goal": goal},
                    np.float32([[99.0, 99.0]]),
                    {"observation": after, "desired_goal": goal},
                    reward=5.0,
                    truncated=step == length - 1,
                    duration=duration,
                )
            )
    return memory


def sampled(memory, size=3000):
    batch = memory.sample(size)
    here = batch.observation["observation"].numpy()
    lengths = np.array(LENGTHS)[here[:, 0].astype(int)]
    return batch, here, lengths


def test_statistics_see_achieved_goals_in_the_place_of_stored_ones():
    own = {"observation": np.array([[3.0, 4.0]]), "desired_goal": np.array([[-7.0]])}
    shown = filled().as_shown(own)
    assert shown["desired_goal"].tolist() == [[4.0]]
    assert shown["observation"] is own["observation"]
    assert own["desired_goal"].tolist() == [[-7.0]], "not written to"


@pytest.mark.parametrize("ahead", [1, 4, 100])
def test_sub_goals_are_achieved_so_many_steps_later_or_at_the_goal(ahead):
    batch, here, _ = sampled(filled(ahead=ahead))
    goal = batch.observation["desired_goal"].numpy()[:, 0]
    sent = batch.action.numpy()
    assert (goal > here[:, 1]).all()
    np.testing.assert_array_equal(sent[:, 0], here[:, 0])
    np.testing.assert_array_equal(sent[:, 1], np.minimum(here[:, 1] + ahead, goal))
    after = batch.next_observation
    np.testing.assert_array_equal(after["observation"].numpy(), sent)
    np.testing.assert_array_equal(after["desired_goal"].numpy()[:, 0], goal)


def test_sub_goals_for_goals_elsewhere_are_cut_at_the_end_of_the_trajectory():
    shares = rl.GoalShares(current=0.0, trajectory=0.0, random=1.0)
    batch, here, lengths = sampled(filled(ahead=4, shares=shares))
    sent = batch.action.numpy()
    far = np.minimum(here[:, 1] + 4, lengths)
    assert (sent[:, 1] <= far).all()
    assert (sent[:, 1] == far).mean() > 0.9  # others have their goal ahead in the trajectory
    goals = batch.observation["desired_goal"].numpy()[:, 0]
    assert (goals > lengths).any()


def test_sub_goals_count_simulator_steps():
    batch, here, _ = sampled(filled(ahead=6, duration=3))
    goal = batch.observation["desired_goal"].numpy()[:, 0]
    wanted = np.minimum(here[:, 1] + 2, goal)
    np.testing.assert_array_equal(batch.action.numpy()[:, 1], wanted)


def test_sub_goals_stay_within_the_bounds_of_the_level_below():
    narrow = GoalSpace(low=(0.0, 0.0), high=(100.0, 3.0), threshold=(0.5, 0.5))
    memory = built(place(below=narrow), ahead=100)
    for step in range(9):
        here = np.array([[0, step]], np.float64)
        seen = {"desired_goal": np.zeros((1, 1))}
        memory.add(
            transition(
                {"observation": here, **seen},
                np.float32([[0, 0]]),
                {"observation": here + 1, **seen},
                reward=0.0,
                truncated=step == 8,
            )
        )
    assert memory.sample(200).action[:, 1].max() == 3


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (place(below=None), "give that level a GoalSpace"),
        (
            place(below=GoalSpace(low=(0.0,), high=(1.0,), threshold=(0.1,), relative=True)),
            "absolute goals",
        ),
        (place(goal=None), "goal is None"),
    ],
)
def test_sub_goals_of_levels_that_do_not_fit_are_refused(where, message):
    with pytest.raises(ConfigurationError, match=message):
        built(where)
