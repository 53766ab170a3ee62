"""Keys that must be fetched before the chest counts: places, rewards, order, saving."""

import numpy as np
import pytest

from coach_rl.environments import parameters

PLACES = {
    "ant_key_chest": (((0, 16),), (0, 32)),
    "ant_double_key_chest": (((16, 32), (16, 0)), (32, 0)),
}
"""Keys in their order, and the chest (`EnvWithKeyChest` and `EnvWithDoubleKeyChest` of SSE)."""
STILL = np.zeros((1, 8), np.float32)


def build(level, rows=1, **kwargs):
    kwargs = {"targets": "evaluation", **kwargs}
    return parameters(level, threads=1, kwargs=kwargs).build(num_envs=rows)


def put(batch, place, row=0):
    """Put the ant of a row somewhere and let it stand there for a step."""
    batch.simulators.data[row].qpos[:2] = place
    batch.send(STILL, np.array([row]))
    return batch.recv()


@pytest.mark.parametrize("level", PLACES)
def test_key_chest_places_radii_limits(level):
    task = parameters(level).task
    keys, chest = PLACES[level]
    assert task.keys.tolist() == [list(key) for key in keys]
    assert build(level).reset(seed=0).observation["desired_goal"].tolist() == [[*chest, len(keys)]]
    assert task.max_episode_steps == 3000
    assert (task.goal_radius, task.reward_radius, task.subgoal_radius) == (5.0, 5.0, 0.5)
    assert (task.frame_skip, task.timestep, task.gear) == (5, 0.02, 30)


@pytest.mark.parametrize("level", PLACES)
def test_key_reward_1_chest_reward_5(level):
    batch, (keys, chest) = build(level), PLACES[level]
    assert batch.reset(seed=0).observation["observation"][0, 29:].tolist() == [0.0] * len(keys)
    for number, key in enumerate(keys, start=1):
        answer = put(batch, key)
        assert (answer.reward[0], answer.terminated[0]) == (1.0, False)
        assert answer.observation["achieved_goal"][0, 2] == number
        flags = [float(other < number) for other in range(len(keys))]
        assert answer.observation["observation"][0, 29:].tolist() == flags
        assert put(batch, key).reward[0] == 0.0  # nobody takes it twice
    answer = put(batch, chest)
    assert (answer.reward[0], answer.terminated[0], answer.info["is_success"][0]) == (5, True, True)
    assert answer.first_observation["achieved_goal"][0, 2] == 0  # in the next episode


@pytest.mark.parametrize("level", PLACES)
def test_chest_without_all_keys_no_reward(level):
    batch, (keys, chest) = build(level), PLACES[level]
    batch.reset(seed=0)
    for key in (None, *keys[:-1]):
        if key is not None:
            put(batch, key)
        answer = put(batch, chest)
        assert (answer.reward[0], answer.terminated[0], answer.info["is_success"][0]) == (0, 0, 0)


def test_second_key_before_first_is_not_taken():
    batch, (first, second) = build("ant_double_key_chest"), PLACES["ant_double_key_chest"][0]
    batch.reset(seed=0)
    taken = [put(batch, key).observation["achieved_goal"][0, 2] for key in (second, first, second)]
    assert taken == [0, 1, 2]


@pytest.mark.parametrize(("away", "taken"), [(4.9, 1), (5.1, 0)])
def test_key_is_taken_within_radius(away, taken):
    batch = build("ant_key_chest")
    batch.reset(seed=0)
    assert put(batch, (away, 16)).observation["achieved_goal"][0, 2] == taken


def test_keys_are_independent_between_rows():
    batch = build("ant_key_chest", rows=3)
    batch.reset(seed=0)
    put(batch, (0, 16), row=1)
    batch.send(np.zeros((3, 8), np.float32))
    assert batch.recv().observation["achieved_goal"][:, 2].tolist() == [0, 1, 0]


def test_taken_key_is_hidden():
    batch = build("ant_key_chest")
    batch.reset(seed=0)
    heights = [batch.simulators.data[0].mocap_pos[1, 2]]
    put(batch, (0, 16))
    heights.append(batch.simulators.data[0].mocap_pos[1, 2])
    put(batch, (0, 32))  # the episode ends, the next one begins
    heights.append(batch.simulators.data[0].mocap_pos[1, 2])
    assert heights[0] == heights[2] > 0 > heights[1]


def test_goal_space_needs_place_and_keys():
    task = parameters("ant_double_key_chest").task
    goal = np.tile(np.float32([32, 0, 2]), (4, 1))
    places = np.array([[32, 4.9, 2], [32, 5.1, 2], [32, 0, 1], [32, 0, 0]], np.float64)
    seen = {"achieved_goal": places}
    assert task.goal_space.reached(goal, seen).tolist() == [True, False, False, False]
    assert task.reached(places, goal).tolist() == [True, False, False, False]
    assert task.compute_reward(places, goal).tolist() == [5, 0, 0, 0]
    assert task.goal_space.space.high.tolist() == [36, 36, 2]
    assert task.subgoal_space.elements == (0, 1)
    plain = parameters("ant_double_key_chest", kwargs={"sparse_rewards": "goal"}).task
    assert plain.compute_reward(places, goal).tolist() == [0, -1, -1, -1]


def test_training_goals_cover_the_floor_with_all_keys():
    task, rng = parameters("ant_double_key_chest").task, np.random.default_rng(0)
    goals = np.array([task.target(rng) for _ in range(500)])
    assert (goals[:, 2] == 2).all()
    cells = {tuple(cell) for cell in np.round(goals[:, :2] / 8).astype(int).tolist()}
    free = {(0, 0), (0, 1), (0, 2), (0, 3), (0, 4), (1, 4), (2, 4), (1, 2), (2, 2), (3, 2), (4, 2)}
    assert cells == free | {(2, 1), (2, 0), (4, 1), (4, 0)}
