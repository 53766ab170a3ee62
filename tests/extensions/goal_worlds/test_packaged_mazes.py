"""OGBench's and Gymnasium-Robotics' mazes equal what their packages show, step for step."""

import subprocess
import sys

import gymnasium
import mujoco
import numpy as np
import pytest

from coach_rl.environments import parameters

OGBENCH = {
    f"ogbench_{body}_maze_{size}": f"{body}maze-{size}-v0"
    for body in ("point", "ant")
    for size in ("medium", "large", "giant")
}
ROBOTICS = {
    "robotics_ant_maze_u": "AntMaze_UMaze-v5",
    "robotics_ant_maze_medium": "AntMaze_Medium-v5",
    "robotics_ant_maze_large": "AntMaze_Large-v5",
    "robotics_point_maze_u": "PointMaze_UMaze-v3",
    "robotics_point_maze_medium": "PointMaze_Medium-v3",
    "robotics_point_maze_large": "PointMaze_Large-v3",
}
SAYS = "is not installed; it comes with the extra"


@pytest.fixture
def ogbench():
    return pytest.importorskip("ogbench.locomaze", reason=f"ogbench {SAYS} ogbench")


@pytest.fixture
def robotics():
    return pytest.importorskip("gymnasium_robotics", reason=f"gymnasium_robotics {SAYS} robotics")


def made(name):
    """The package's environment; it renders nothing."""
    return gymnasium.make(name, disable_env_checker=True)


def compared(batch, theirs, rng, steps, *, held=False):
    """Step both by the same actions, random ones or the first one's full forces all the time."""
    space, action = batch.spaces.action, None
    for _ in range(steps):
        if action is None or not held:
            action = rng.uniform(space.low, space.high, (1, *space.shape)).astype(np.float32)
        if held:
            action = np.sign(action)
        batch.send(action)
        answer = batch.recv()
        yield answer, theirs.step(action[0].astype(np.float64))


@pytest.mark.parametrize("level", OGBENCH)
def test_ogbench_step_for_step(ogbench, level):
    theirs = made(OGBENCH[level]).unwrapped
    batch = parameters(level, threads=1, max_episode_steps=-1, kwargs={"terminate": False}).build(
        num_envs=1
    )
    rng, successes = np.random.default_rng(3), 0
    for episode in range(4):
        start, ours = batch.reset(seed=episode), batch.simulators.data[0]
        goal = start.observation["desired_goal"][0]
        theirs.reset()
        theirs.set_goal(goal_xy=goal)
        if episode == 3:  # beside the goal, or random steps would never get there
            ours.qpos[:2] = goal + 0.1
            mujoco.mj_forward(batch.scene.model, ours)
        mujoco.mj_resetData(theirs.model, theirs.data)
        theirs.set_state(ours.qpos, ours.qvel)
        for answer, (observation, reward, _, _, info) in compared(batch, theirs, rng, 15):
            np.testing.assert_array_equal(answer.observation["observation"][0], observation)
            np.testing.assert_array_equal(answer.observation["achieved_goal"][0], theirs.get_xy())
            assert answer.reward[0] == reward - 1
            assert answer.info["is_success"][0] == info["success"]
            successes += int(info["success"])
    assert successes > 0
    batch.close()


@pytest.mark.parametrize("level", OGBENCH)
def test_ogbench_tasks_radii_and_time_limits(ogbench, level):
    theirs, task = made(OGBENCH[level]), parameters(level).task
    inside = theirs.unwrapped
    assert task.max_episode_steps == theirs.spec.max_episode_steps
    assert (task.goal_radius, task.frame_skip) == (inside._goal_tol, inside.frame_skip)
    assert task.cell_size == inside._maze_unit
    assert task.terminate == inside._terminate_at_goal
    batch = parameters(level, threads=1).build(num_envs=60)
    seen = batch.reset(seed=0).observation
    begun, wanted = seen["achieved_goal"], seen["desired_goal"]
    drawn = set()
    for number, info in enumerate(inside.task_infos, start=1):
        near = (np.abs(begun - info["init_xy"]) <= 1) & (np.abs(wanted - info["goal_xy"]) <= 1)
        drawn |= set(np.flatnonzero(near.all(axis=1)))
        assert near.all(axis=1).sum() > 2
        one = parameters(level, threads=1, kwargs={"task": number}).build(num_envs=4)
        goals = one.reset(seed=1).observation["desired_goal"]
        assert (np.abs(goals - info["goal_xy"]) <= 1).all()
        assert np.ptp(goals) > 0
        one.close()
    assert len(drawn) == 60
    batch.close()


def test_ogbench_ant_poses_and_joints_equal_ours(ogbench):
    """So that walkers of this room's mazes can walk there, and their symmetry is the same."""
    task = parameters("ogbench_ant_maze_large", kwargs={"shows_pose": True}).task
    theirs, ours = task.load(), parameters("ant_maze_u12").task.load()
    for model in (theirs, ours):
        assert model.opt.timestep == 0.02
    np.testing.assert_allclose(theirs.jnt_range, ours.jnt_range, rtol=1e-6)
    np.testing.assert_array_equal(theirs.actuator_trnid, ours.actuator_trnid)
    np.testing.assert_array_equal(theirs.actuator_gear, ours.actuator_gear)
    np.testing.assert_array_equal(theirs.jnt_axis, ours.jnt_axis)
    batch = parameters("ogbench_ant_maze_large", kwargs={"shows_pose": True}).build(num_envs=2)
    seen = batch.reset(seed=1).observation
    upright = 1 - 2 * (seen["observation"][:, 4:6] ** 2).sum(axis=1)
    np.testing.assert_allclose(seen["pose"], np.column_stack([seen["achieved_goal"], upright]))
    assert task.subgoal_space.key == "pose"
    assert task.subgoal_space.threshold == (0.5, 0.5, 1.0)
    assert task.goal_space.size == 2
    batch.close()


@pytest.mark.parametrize("level", ROBOTICS)
def test_robotics_same_seed_same_episodes(robotics, level):
    theirs = made(ROBOTICS[level]).unwrapped
    batch = parameters(level, threads=1, max_episode_steps=35).build(num_envs=1)
    start, (seen, _) = batch.reset(seed=11), theirs.reset(seed=11)
    rng = np.random.default_rng(0)
    for episode in range(4):
        for key, values in seen.items():
            np.testing.assert_array_equal(start.first_observation[key][0], values, err_msg=key)
        steps = compared(batch, theirs, rng, 35, held=episode % 2 == 1)
        for answer, (seen, reward, terminated, _, info) in steps:
            for key, values in seen.items():
                np.testing.assert_array_equal(answer.observation[key][0], values, err_msg=key)
            assert answer.reward[0] == reward - 1
            assert (answer.terminated[0], answer.info["is_success"][0]) == (
                terminated,
                info["success"],
            )
        start, (seen, _) = answer, theirs.reset()
    batch.close()


@pytest.mark.parametrize("level", ROBOTICS)
def test_robotics_radius_and_time_limits(robotics, level):
    theirs, task = made(ROBOTICS[level]), parameters(level).task
    assert task.max_episode_steps == theirs.spec.max_episode_steps
    goal = np.zeros((2, 2))
    near = np.array([[0.45, 0.0], [0.46, 0.0]])
    assert task.reached(near, goal).tolist() == [True, False]
    assert theirs.unwrapped.compute_reward(near, goal, {}).tolist() == [1, 0]


def test_other_maps_of_the_package(robotics):
    world = parameters("robotics_ant_maze_u", kwargs={"maze": "OPEN_DIVERSE_G"}, threads=1)
    batch = world.build(num_envs=50)
    starts = batch.reset(seed=0).observation["achieved_goal"]
    assert np.ptp(starts, axis=0) == pytest.approx([2, 2], abs=0.3)  # one cell alone has an R
    batch.close()


def test_missing_package_error_names_extra():
    program = """
import sys
from coach_rl.core.errors import ConfigurationError
from coach_rl.environments import level_names, parameters
for module, level in (("ogbench", "ogbench_ant_maze_giant"),
                      ("gymnasium_robotics", "robotics_point_maze_u")):
    sys.modules[module] = None
    assert level in level_names()
    description = parameters(level)
    for asked in (lambda: description.build(num_envs=1), lambda: description.task.goal_space):
        try:
            asked()
        except ConfigurationError as error:
            print(error)
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    lines = ran.stdout.splitlines()
    assert len(lines) == 4, ran.stderr
    for line, extra in zip(lines, ("ogbench", "ogbench", "robotics", "robotics"), strict=True):
        assert line.startswith("the goal world's module '")
        assert f'is not installed; `pip install -e ".[{extra}]"`' in line
