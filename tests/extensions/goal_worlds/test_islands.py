"""The simulation's islands, which are off where they change nothing."""

import mujoco
import numpy as np
import pytest

from coach_rl.environments.goal_worlds import GoalWorldParameters
from coach_rl.environments.mujoco.task import Scene


@pytest.mark.parametrize("level", ["ant_maze_u12", "ant_four_rooms", "goal_pendulum", "ant_push"])
def test_disabled_islands_do_not_change_results(level):
    task = GoalWorldParameters(level=level).task
    plain, model = task.load(), Scene(task.load(), task.frame_skip).model
    looks = plain.opt.disableflags == model.opt.disableflags
    assert looks == (level == "ant_push")  # its block is a second tree
    simulators = [(each, mujoco.MjData(each)) for each in (plain, model)]
    rng = np.random.default_rng(0)
    touched = 0
    for _ in range(60):
        action = rng.uniform(-1, 1, plain.nu) * plain.actuator_ctrlrange[:, 1]
        for each, data in simulators:
            data.ctrl[:] = action
            mujoco.mj_step(each, data, task.frame_skip)
        (_, first), (_, second) = simulators
        touched += first.ncon
        for name in ("qpos", "qvel", "qacc", "qfrc_constraint"):
            np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    assert (touched > 0) == level.startswith("ant")
