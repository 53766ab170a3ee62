"""What all goal worlds promise: goals, rewards, levels, Gymnasium."""

import itertools
import pickle
import warnings
from dataclasses import replace

import gymnasium
import numpy as np
import pytest
from every_goal_world import every_goal_world
from gymnasium.utils.env_checker import check_env

from coach_rl.configuration.extensions import own_extensions
from coach_rl.core.records import End
from coach_rl.environments import level_names, make, parameters
from coach_rl.environments.goal_worlds import (
    GOAL_WORLDS,
    GoalWorldParameters,
    register_goal_worlds,
)
from coach_rl.environments.goal_worlds.pendulum import AngleGoalPendulum
from coach_rl.extensions.testing import ENVIRONMENT_CHECKS, Trial
from coach_rl.extensions.testing import exchange_checks as exchange
from coach_rl.extensions.testing import repetition_checks as repetition

LEVELS = every_goal_world()
OF_ALL_TASKS = {
    *(exchange.reset_answers_for_all_rows, exchange.send_before_reset_is_refused),
    *(exchange.duration_counts_steps, exchange.masks_allow_an_action),
    *(exchange.recv_without_send_is_empty, exchange.directive_equals_bare_action),
    *(exchange.rows_and_actions_stay_together, exchange.unsent_rows_stay_untouched),
    *(exchange.bad_rows_are_refused, exchange.bad_actions_are_refused),
    *(exchange.answers_are_not_overwritten, exchange.answers_can_be_written_to),
    *(exchange.sent_actions_stay_as_they_are, repetition.open_decisions_are_saved),
    *(repetition.saved_before_reset, repetition.close_twice),
}
"""Checks of what one class does for the tasks of all levels."""
VARIED = {"angle_goal_pendulum", "ant_fall_stochastic", "ant_maze_u12", "point_maze_u"}
"""Levels that run these checks each time."""


def contract():
    """Every check of every level."""
    for level, check in itertools.product(LEVELS, ENVIRONMENT_CHECKS):
        (name,) = level.values
        is_slow = check in OF_ALL_TASKS and name not in VARIED
        marks = (*level.marks, *([pytest.mark.slow] if is_slow else ()))
        yield pytest.param(name, check, marks=marks, id=f"{name}-{check.__name__}")


@pytest.mark.drawn(one_of=3, each="check")
@pytest.mark.parametrize(("level", "check"), [*contract()])
def test_contract(level, check):
    description = parameters(level, max_episode_steps=9, threads=2)
    check(Trial(build=lambda num_envs: description.build(num_envs=num_envs), steps=20))


def test_tasks_of_the_table_are_all_goal_worlds():
    (table,) = (each for each in own_extensions() if each.name == "goal_worlds")
    assert [name for names in table.tasks.values() for name in names] == [*GOAL_WORLDS]


@pytest.mark.parametrize("level", LEVELS)
def test_levels(level):
    description = parameters(level)
    assert type(description) is GoalWorldParameters
    assert description.level == level
    assert level in level_names()
    assert pickle.loads(pickle.dumps(description)) == description
    assert hash(description) == hash(parameters(level))


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("reward_type", ["sparse", "dense"])
@pytest.mark.parametrize("level", LEVELS)
def test_reward_success_and_goals_agree(level, reward_type):
    kwargs = {"reward_type": reward_type, "terminate": True}
    if level in ("ant_key_chest", "ant_double_key_chest"):
        kwargs["sparse_rewards"] = "goal"
    description = parameters(level, threads=1, kwargs=kwargs)
    environment = description.build(num_envs=3)
    start = environment.reset(seed=1)
    rng, space = np.random.default_rng(0), environment.spaces.action
    goals = start.observation["desired_goal"]
    for _ in range(20):
        environment.send(rng.uniform(space.low, space.high, (3, *space.shape)).astype(np.float32))
        answer = environment.recv()
        seen = answer.observation
        rewards = description.task.compute_reward(seen["achieved_goal"], seen["desired_goal"], {})
        np.testing.assert_array_equal(answer.reward, rewards)
        reached = description.task.reached(seen["achieved_goal"], seen["desired_goal"])
        np.testing.assert_array_equal(answer.info["is_success"], reached)
        if reward_type == "sparse":
            np.testing.assert_array_equal(answer.reward, np.where(reached, 0, -1))
        else:
            assert (answer.reward < 0).all()
        np.testing.assert_array_equal(answer.terminated, answer.info["is_success"])
        np.testing.assert_array_equal(seen["desired_goal"], goals)
        goals = answer.first_observation["desired_goal"]
    itself = description.task.compute_reward(seen["achieved_goal"], seen["achieved_goal"])
    assert itself.tolist() == [0, 0, 0]
    environment.close()


@pytest.mark.parametrize("level", LEVELS)
def test_starts_differ_between_rows_and_episodes(level):
    environment = make(level, num_envs=4, max_episode_steps=1, threads=1)
    action = np.zeros((4, *environment.spaces.action.shape), np.float32)
    starts = [np.hstack([*environment.reset(seed=0).observation.values()])]
    for _ in range(3):
        environment.send(action)
        answer = environment.recv()
        assert (answer.end & End.TRUNCATED).all()
        starts.append(np.hstack([*answer.first_observation.values()]))
    assert len(np.unique(np.concatenate(starts), axis=0)) == 16
    environment.close()


@pytest.mark.parametrize("level", LEVELS)
def test_gymnasium_checker_accepts_goal_worlds(level):
    register_goal_worlds()
    register_goal_worlds()
    name = f"coach_rl/{GOAL_WORLDS[level].__name__}-v0"
    environment = gymnasium.make(name)
    assert environment.spec.max_episode_steps == GOAL_WORLDS[level].max_episode_steps
    with warnings.catch_warnings():
        # As for Gymnasium's own MuJoCo tasks, observations have no bounds, actions need not be +-1.
        warnings.filterwarnings("ignore", message=".*(infinity|normalized|symmetric).*")
        check_env(environment.unwrapped, skip_render_check=True)
    environment.close()


@pytest.mark.parametrize("level", LEVELS)
def test_gymnasium_environment_equals_batch(level):
    register_goal_worlds()
    single = gymnasium.make(f"coach_rl/{GOAL_WORLDS[level].__name__}-v0", max_episode_steps=6)
    batch = parameters(level, max_episode_steps=6, threads=1).build(num_envs=1)
    seen, _ = single.reset(seed=5)
    answer = batch.reset(seed=5)
    rng, space = np.random.default_rng(0), single.action_space
    for step in range(1, 7):
        for key, values in answer.observation.items():
            np.testing.assert_array_equal(values[0], seen[key])
        action = rng.uniform(space.low, space.high).astype(np.float32)
        seen, reward, terminated, truncated, info = single.step(action)
        batch.send(action[None])
        answer = batch.recv()
        assert reward == answer.reward[0]
        assert info["is_success"] == answer.info["is_success"][0]
        assert (terminated, truncated) == (answer.terminated[0], answer.truncated[0])
        assert truncated == (step == 6)
    single.close()
    batch.close()


@pytest.mark.parametrize("level", LEVELS)
def test_goal_spaces_agree_with_observations_and_the_task(level):
    description = parameters(level, threads=1)
    task, batch = description.task, description.build(num_envs=2)
    seen = batch.reset(seed=0).observation
    for goals in (task.goal_space, task.subgoal_space):
        goals.check(batch.spaces.observation)
        achieved = goals.achieved(seen)
        assert (achieved >= goals.low).all()
        assert (achieved <= goals.high).all()
    goals, desired = task.goal_space, seen["desired_goal"]
    assert (desired >= goals.low).all()
    assert (desired <= goals.high).all()
    distance = task.distance(seen["achieved_goal"], desired)
    np.testing.assert_allclose(np.linalg.norm(goals.difference(desired, seen), axis=1), distance)
    success = task.reached(seen["achieved_goal"], desired)
    if hasattr(task, "reward_radius"):  # smaller than that of success
        success = distance <= task.reward_radius
    np.testing.assert_array_equal(goals.reached(desired, seen), success)
    batch.close()


def test_gymnasium_terminates_at_goal_with_terminate():
    register_goal_worlds()
    for terminate in (True, False):
        everywhere = {"start_angle": (0.0, 0.0), "terminate": terminate}
        environment = gymnasium.make("coach_rl/GoalPendulum-v0", **everywhere)
        environment.reset(seed=0)
        _, reward, terminated, _, info = environment.step(np.zeros(1, np.float32))
        assert (reward, terminated, info) == (0.0, terminate, {"is_success": True})
        environment.close()


@pytest.mark.parametrize("level", LEVELS)
def test_dense_reward_is_minus_distance(level):
    task = GOAL_WORLDS[level](reward_type="dense")
    here, away = np.zeros(task.load().nuserdata), np.zeros(task.load().nuserdata)
    away[:2] = 0.3, 0.4
    assert task.compute_reward(away[None], here) == pytest.approx([-0.5])
    assert task.compute_reward(np.stack((here, away)), away) == pytest.approx([-0.5, 0])


def test_angle_distance_wraps():
    task = AngleGoalPendulum()
    distance = task.distance(np.array([3.1, 4.0]), np.array([-3.1, 1.0]))
    assert distance == pytest.approx(np.hypot(2 * np.pi - 6.2, 3))


def test_time_limits():
    task = parameters("goal_pendulum").task
    assert task.max_episode_steps == 1000
    assert replace(task, terminate=False).terminate is False
