"""The sparse push, fall and four rooms of HESS and HLPS, and the noise of stochastic worlds."""

import numpy as np
import pytest
from every_goal_world import build

from coach_rl.environments import parameters

LIMITS = {
    "ant_push_sparse": 500,
    "ant_push_stochastic": 500,
    "ant_fall_sparse": 500,
    "ant_fall_stochastic": 500,
    "ant_four_rooms_sparse": 1000,
}
GOALS = {
    "ant_push_sparse": [0, 8],
    "ant_fall_sparse": [0, 12, 2.5],
    "ant_four_rooms_sparse": [14, 14],
}


@pytest.mark.parametrize("level", LIMITS)
def test_hess_mazes_limits_radii_torques(level):
    task = parameters(level).task
    assert task.max_episode_steps == LIMITS[level]
    assert (task.frame_skip, task.timestep, task.gear) == (10, 0.02, 16)
    assert (task.goal_radius, task.reward_radius, task.terminate) == (1.5, 1.5, False)
    assert task.position_noise == (0.05 if "stochastic" in level else 0.0)


@pytest.mark.parametrize("level", GOALS)
def test_goals_of_evaluations(level):
    batch = build(level, 3, targets="evaluation")
    assert batch.reset(seed=0).observation["desired_goal"].tolist() == [GOALS[level]] * 3


@pytest.mark.parametrize("level", GOALS)
def test_training_goals_cover_the_floor_only(level):
    task, rng = parameters(level).task, np.random.default_rng(0)
    goals = np.array([task.target(rng) for _ in range(1000)])
    signs = "".join(sign for row in task.maze for sign in row).translate({35: None, 126: None})
    cells = np.unique(np.round(goals[:, :2] / task.cell_size), axis=0)
    assert len(cells) == len(signs)


def test_position_noise_has_the_given_deviation():
    steps, rows = 12, 64
    calm = build("ant_push", rows)
    noisy = build("ant_push", rows, position_noise=0.05)
    pushes, action = [], np.zeros((rows, 8), np.float32)
    for batch in (calm, noisy):
        batch.reset(seed=0)
    for _ in range(steps):
        for index, data in enumerate(calm.simulators.data):  # both start each step alike
            noisy.simulators.data[index].qpos[:] = data.qpos
            noisy.simulators.data[index].qvel[:] = data.qvel
            noisy.simulators.data[index].qacc_warmstart[:] = data.qacc_warmstart
        for batch in (calm, noisy):
            batch.send(action)
        seen = [batch.recv().observation["observation"] for batch in (calm, noisy)]
        np.testing.assert_array_equal(seen[0][:, 2:], seen[1][:, 2:])
        pushes.append((seen[1] - seen[0])[:, :2])
    assert np.std(pushes, axis=(0, 1)) == pytest.approx([0.05, 0.05], rel=0.1)
    assert np.mean(pushes, axis=(0, 1)) == pytest.approx([0, 0], abs=0.006)


def test_position_noise_into_wall_returns_the_ant():
    batch = build("ant_push_sparse", position_noise=0.5)
    batch.reset(seed=0)
    simulator, stayed = batch.simulators.data[0], 0
    for _ in range(30):
        simulator.qpos[:2] = 1.9, 0.0  # the wall begins at 2
        simulator.qvel[:] = 0.0
        batch.send(np.zeros((1, 8), np.float32))
        x, y = batch.recv().observation["observation"][0, :2]
        assert x < 2
        stayed += (x, y) == (1.9, 0.0)
    assert 5 < stayed < 25
