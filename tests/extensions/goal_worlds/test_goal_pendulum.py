"""The pendulum with a goal: its physics and its thresholds, by hand."""

import numpy as np
import pytest

from coach_rl.environments import parameters
from coach_rl.environments.goal_worlds.pendulum import AngleGoalPendulum, GoalPendulum


def build(rows=1, level="goal_pendulum", **kwargs):
    return parameters(level, threads=1, kwargs=kwargs).build(num_envs=rows)


def test_observation_goal_and_action_ranges():
    batch = build(200)
    assert batch.spaces.action.low.tolist() == [-2]
    assert batch.spaces.action.high.tolist() == [2]
    seen = batch.reset(seed=0).observation
    sine, cosine, velocity = seen["observation"].T
    assert sine**2 + cosine**2 == pytest.approx(np.ones(200))
    assert (cosine <= np.cos(np.pi / 4)).all()  # a quarter of the circle around upright is left out
    assert np.abs(velocity).max() <= 0.05
    np.testing.assert_array_equal(seen["achieved_goal"], seen["observation"])
    np.testing.assert_array_equal(seen["desired_goal"], np.tile([0, 1, 0], (200, 1)))


def test_step_equals_equation_of_motion():
    # A point mass m at length l with its ball's own inertia 2/5 m r^2, r = 0.05, on a hinge with
    # damping d and torque u: I a = m g l sin(angle) + u - d v, stepped by 2 ms semi-implicitly with
    # implicit damping, as MuJoCo's Euler integrator does.
    batch = build(start_angle=(2.0, 2.0), start_velocity=(0.0, 0.0))
    batch.reset(seed=0)
    inertia, step = 1 * 0.5**2 + 0.4 * 0.05**2, 0.002
    angle, velocity = 2.0, 0.0
    for torque in (2.0, -1.0, 0.5):
        batch.send(np.float32([[torque]]))
        for _ in range(10):
            force = 9.81 * 0.5 * np.sin(angle) + torque - 0.1 * velocity
            velocity += step * force / (inertia + step * 0.1)
            angle += step * velocity
        seen = batch.recv().observation["observation"][0]
        assert seen == pytest.approx([np.sin(angle), np.cos(angle), velocity], abs=1e-9)


def test_coach_thresholds():
    task = GoalPendulum()
    goal = np.array([0.0, 1.0, 0.0])
    near = [[0.07, 0.93, 0.75], [0.08, 1, 0], [0, 0.92, 0], [0, 1, -0.76]]
    assert task.reached(np.array(near), goal).tolist() == [True, False, False, False]
    assert task.compute_reward(np.array([near]), goal).tolist() == [[0, -1, -1, -1]]


def test_paper_thresholds_and_goals():
    task = AngleGoalPendulum()
    near = np.deg2rad([[9.4, 0], [9.6, 0], [-9.4, 0], [0, 0]])
    near[3, 1] = 0.61
    assert task.reached(near, np.zeros(2)).tolist() == [True, False, True, False]
    # Two angles close to hanging, one on each side: 4 degrees apart.
    left, right = np.deg2rad([178.0, 0]), np.deg2rad([-178.0, 0])
    assert task.reached(left, right)
    goals = build(300, "angle_goal_pendulum").reset(seed=0).observation["desired_goal"]
    bounds = np.array([np.deg2rad(16), 0.6])
    assert (np.abs(goals) <= bounds).all()
    assert (np.abs(goals).max(axis=0) > 0.9 * bounds).all()


def test_angle_wraps_and_velocity_is_clipped():
    batch = build(
        level="angle_goal_pendulum", start_angle=(7.0, 7.0), start_velocity=(-20.0, -20.0)
    )
    seen = batch.reset(seed=0).observation
    assert seen["achieved_goal"][0] == pytest.approx([7 - 2 * np.pi, -15])
    assert seen["observation"][0, 2] == -20


def test_random_goals_are_on_the_unit_circle():
    wide = {"goal_angle": (-np.pi / 8, np.pi / 8), "goal_velocity": (-0.2, 0.2)}
    goals = build(100, **wide).reset(seed=0).observation["desired_goal"]
    assert goals[:, 0] ** 2 + goals[:, 1] ** 2 == pytest.approx(np.ones(100))
    assert (goals[:, 1] >= np.cos(np.pi / 8)).all()
    assert len(np.unique(goals[:, 0])) == 100
    assert np.abs(goals[:, 2]).max() <= 0.2
