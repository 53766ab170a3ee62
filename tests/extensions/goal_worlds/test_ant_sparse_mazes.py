"""The ant mazes: what their authors' code says of geometry, starts, goals, thresholds and limits.

The numbers are copied from these repositories; docs/goal_worlds.md says from which commits:

- HIRO: github.com/tensorflow/models, research/efficient-hrl/environments: `maze_env_utils.py`,
  `maze_env.py`, `ant.py`
- DHRL: github.com/jayLEE0301/dhrl_official, envs/antenv: `maze_env_utils.py`, `create_maze_env.py`,
  `__init__.py`, `ant_maze_bottleneck.py`, `assets/ant_maze_bottleneck.xml`
- BEAG: github.com/ml-postech/BEAG, envs/antenv: `maze_env_utils.py`, `create_maze_env.py`,
  `__init__.py`, `ant.py`
- LESSON and HESS: github.com/SiyuanLee/LESSON and github.com/SiyuanLee/HESS, goal_env/mujoco:
  `maze_env_utils.py`, `create_maze_env.py`, `__init__.py`, `ant.py`
- SSE: github.com/TS-August/sse-hrl-course-report, a copy, sse_reproduction/envs/antenv:
  `maze_env_utils.py`, `create_maze_env.py`
"""

import itertools
import math
from types import SimpleNamespace

import mujoco
import numpy as np
import pytest
from every_goal_world import build

from coach_rl.environments import parameters

LIMITS = {
    "ant_maze_u12": 600,
    "ant_maze_u24": 600,
    "ant_maze_bottleneck": 600,
    "ant_gaps": 600,
    "ant_maze_s": 1000,
    "ant_maze_w": 1000,
    "ant_maze_pi": 1000,
    "ant_maze_complex": 2000,
}
U = ("#####", "#r..#", "###.#", "#...#", "#####")
PUSH = ("#####", "#.r##", "#.+.#", "##.##", "#####")
FALL = ("####", "#r.#", "#.|#", "#~~#", "#..#", "####")
STRUCTURES = {
    "ant_maze_u12": (4, U),
    "ant_maze_u24": (8, U),
    "ant_maze_s": (
        8,
        ("#######", "#r....#", "#####.#", "#.....#", "#.#####", "#.....#", "#######"),
    ),
    "ant_maze_pi": (
        8,
        ("#######", "#.r#..#", "#.###.#", "#..#..#", "##.#.##", "#.....#", "#######"),
    ),
    "ant_maze_w": (
        8,
        ("#######", "#.....#", "#r###.#", "###...#", "#.###.#", "#.....#", "#######"),
    ),
    "ant_key_chest": (
        8,
        ("#######", "#r....#", "#####.#", "#.....#", "#####.#", "#.....#", "#######"),
    ),
    "ant_double_key_chest": (
        8,
        ("#######", "#r#.#.#", "#.#.#.#", "#.....#", "#.#####", "#...###", "#######"),
    ),
    "ant_maze": (8, U),
    "ant_push": (8, PUSH),
    "ant_fall": (8, FALL),
    "ant_push_sparse": (4, PUSH),
    "ant_fall_sparse": (4, FALL),
    "ant_four_rooms_sparse": (
        2,
        (
            "###########",
            "#....#....#",
            "#.r..#....#",
            "#.........#",
            "#....#....#",
            "##.#####.##",
            "#....#....#",
            "#....#....#",
            "#.........#",
            "#....#....#",
            "###########",
        ),
    ),
    "ant_maze_complex": (
        8,
        (
            "#########",
            "#r..#...#",
            "###.#...#",
            "#...##.##",
            "#.###..##",
            "#.#.#.###",
            "#.....#.#",
            "#.#.#...#",
            "#########",
        ),
    ),
}
"""Side of a cell, and rows of cells with rising y (`construct_maze`).

The side is that of `create_maze_env`, with HESS of the worlds registered as `-v1`, for four rooms
as `-v2`, with HIRO of `MazeEnv`. # is wall, ~ a gap, r the start; + and | are blocks.
"""
SLIDES = {"+": "xy", "|": "yz"}
"""The axes along which a block slides (`Move`)."""
BOTTLENECK = (
    *((-8, 0, 4, 4), (-8, 8, 4, 4), (0, 8, 4, 4), (-8, -8, 4, 4), (0, -8, 4, 4), (8, 8, 4, 4)),
    *((8, -8, 4, 4), (16, -8, 4, 4), (24, -8, 4, 4), (24, 0, 4, 4), (24, 8, 4, 4)),
    *((24, 16, 4, 4), (24, 24, 4, 4), (16, 24, 4, 4), (8, 24, 4, 4), (0, 24, 4, 4)),
    *((-8, 24, 4, 4), (-8, 16, 4, 4), (13.5, 8, 1.9, 1), (18.5, 8, 1.5, 1)),
)
"""The walls of DHRL's bottleneck, `wall1` to `wall20`: x, y and half their sizes."""
STARTS = (*STRUCTURES, "ant_maze_bottleneck", "ant_gaps", "ant_push_stochastic")
GOALS = {
    "ant_maze_u12": {(0, 8)},
    "ant_maze_u24": {(0, 16)},
    "ant_maze_bottleneck": {(0, 16)},
    "ant_gaps": {(0, 20)},
    "ant_maze_s": {(32, 32)},
    "ant_maze_w": {(0, 16)},
    "ant_maze_pi": {(16, 0)},
    "ant_maze_complex": {(40, 8), (16, 48), (40, 48), (16, 32)},
}
"""Goals of evaluations, in metres."""


def is_wall(model, x, y, z=0.5):
    boxes = (model.geom_type == mujoco.mjtGeom.mjGEOM_BOX) & (model.geom_bodyid == 0)
    away = np.abs(model.geom_pos[boxes] - (x, y, z))
    return bool((away < model.geom_size[boxes]).all(axis=1).any())


def cells(structure):
    """What stands in each cell, and where it is, counted in cells from the start."""
    (start,) = ((x, y) for y, row in enumerate(structure) for x, of in enumerate(row) if of == "r")
    for y, row in enumerate(structure):
        for x, cell in enumerate(row):
            yield cell, np.array([x - start[0], y - start[1]])


@pytest.mark.parametrize("level", STRUCTURES)
def test_walls_and_gaps_equal_the_authors(level):
    side, structure = STRUCTURES[level]
    model = parameters(level).task.load()
    height = side / 2  # maze_height 0.5 times the scaling
    is_raised = any(cell == "~" for cell, _ in cells(structure))
    floor = height * is_raised
    for cell, place in cells(structure):
        assert is_wall(model, *(side * place), floor + 0.5) == (cell == "#"), place
        assert is_wall(model, *(side * place), floor - 0.5) == (is_raised and cell != "~"), place
    boxes = (model.geom_type == mujoco.mjtGeom.mjGEOM_BOX) & (model.geom_bodyid == 0)
    assert set(2 * model.geom_size[boxes, 2]) == {height}
    assert set(model.geom_pos[boxes, 2]) == {height / 2, floor + height / 2}


@pytest.mark.parametrize("level", STRUCTURES)
def test_blocks_size_mass_axes_equal_the_authors(level):
    side, structure = STRUCTURES[level]
    blocks = [(SLIDES[cell], place) for cell, place in cells(structure) if cell in SLIDES]
    assert (len(blocks) == 1) == ("push" in level or "fall" in level)
    model = parameters(level).task.load()
    assert model.nq == 15 + 2 * len(blocks)
    for axes, place in blocks:
        falls = axes == "yz"
        (body,) = (body for body in range(model.nbody) if "block" in model.body(body).name)
        floor = side / 2 * falls
        assert model.body_pos[body].tolist() == [*(side * place), floor + side / 4]
        (geom,) = np.flatnonzero(model.geom_bodyid == body)
        half = side / 2 * (0.99 if falls else 1.0)
        assert model.geom_size[geom] == pytest.approx([half, half, side / 4])
        assert model.body_mass[body] == pytest.approx(0.001 if falls else 0.0002)
        joints = np.flatnonzero(model.jnt_bodyid == body)
        assert model.jnt_axis[joints].tolist() == [[a == b for b in "xyz"] for a in axes]
        assert model.jnt_limited[joints].tolist() == [falls] * 2
        if falls:
            assert model.jnt_range[joints].tolist() == [[-side, side], [-floor, 0]]


def test_bottleneck_walls_equal_the_authors():
    model = parameters("ant_maze_bottleneck").task.load()
    for x, y in itertools.product(np.arange(-11.75, 28, 0.5), repeat=2):
        stands = any(abs(x - a) < c and abs(y - b) < d for a, b, c, d in BOTTLENECK)
        assert is_wall(model, x, y) == stands, (x, y)


@pytest.mark.parametrize("level", STARTS)
def test_start_noise_equals_the_authors(level):
    """By 0.1 m and 0.1 radians at most, each number for itself; velocities are normal."""
    batch = build(level, 100)
    seen = batch.reset(seed=0).observation["observation"]
    rest = np.zeros(15)
    rest[2], rest[3] = 0.75 + parameters(level).task.floor_height, 1  # `init_qpos`
    away = np.abs(seen[:, :15] - rest)[:, [0, 1, 2, *range(7, 15)]]  # orientations are made units
    assert (away.max(axis=0) <= 0.1).all()
    assert (away.max(axis=0) > 0.09).all()
    assert away.mean(axis=0) == pytest.approx(np.full(11, 0.05), abs=0.012)
    assert seen[:, 15:29].std(axis=0) == pytest.approx(np.full(14, 0.1), rel=0.3)
    batch.close()


def test_bottleneck_friction_is_that_of_the_authors():
    model = parameters("ant_maze_bottleneck").task.load()
    boxes = model.geom_type == mujoco.mjtGeom.mjGEOM_BOX
    assert np.unique(model.geom_friction[boxes], axis=0).tolist() == [[2.0, 0.1, 0.002]]
    floor = model.geom("ground").friction
    assert floor.tolist() == [1.0, 0.5, 0.5]


def test_ant_gaps_have_the_size_of_the_bottleneck():
    model = parameters("ant_gaps").task.load()
    for middle in (3.5, 8.5, 13.5):
        free = [x for x in np.arange(-1.95, 2, 0.1) if not is_wall(model, x, middle)]
        assert (free[0], free[-1]) == pytest.approx((-0.75, 0.75))
        walls = [y for y in np.arange(middle - 1.95, middle + 2, 0.1) if is_wall(model, 1.0, y)]
        assert (walls[0], walls[-1]) == pytest.approx((middle - 0.95, middle + 0.95))
    boxes = model.geom_type == mujoco.mjtGeom.mjGEOM_BOX
    assert np.unique(model.geom_friction[boxes], axis=0).tolist() == [[2.0, 0.1, 0.002]]


@pytest.mark.parametrize("level", LIMITS)
def test_time_limits_thresholds_and_torques(level):
    task = parameters(level).task
    assert task.max_episode_steps == LIMITS[level]
    assert (task.frame_skip, task.timestep, task.gear) == (5, 0.02, 30)
    assert task.goal_radius == (2.5 if level in ("ant_maze_u12", "ant_gaps") else 5.0)
    assert task.reward_radius == 0.5
    assert (task.reward_type, task.terminate) == ("sparse", False)


@pytest.mark.parametrize("level", GOALS)
def test_training_goals_cover_the_floor(level):
    batch = build(level, 200)
    model, goals = batch.scene.model, batch.reset(seed=0).observation["desired_goal"]
    if level not in ("ant_maze_bottleneck", "ant_gaps"):  # with walls on the floor
        assert not any(is_wall(model, *goal) for goal in goals)
    low, high = np.array(parameters(level).task.extent)[:, :2]
    assert goals.min(axis=0) == pytest.approx(low, abs=0.06 * (high - low).max())
    assert goals.max(axis=0) == pytest.approx(high, abs=0.06 * (high - low).max())
    batch.close()


@pytest.mark.parametrize("level", GOALS)
def test_goals_of_evaluations(level):
    batch = build(level, 30, targets="evaluation")
    goals = batch.reset(seed=0).observation["desired_goal"]
    assert {tuple(goal) for goal in goals.tolist()} == GOALS[level]
    batch.close()


def test_reward_radius_is_smaller_than_success():
    task = parameters("ant_maze_u24").task
    goal, places = np.array([0.0, 16.0]), np.array([[0, 16.4], [0, 16.6], [0, 20.9], [0, 21.1]])
    assert task.compute_reward(places, goal).tolist() == [0, -1, -1, -1]
    assert task.reached(places, goal).tolist() == [True, True, True, False]
    observation = {"achieved_goal": places, "observation": places}
    reached = task.goal_space.reached(np.tile(goal, (4, 1)), observation)
    assert reached.tolist() == [True, False, False, False]
    dense = parameters("ant_maze_u24", kwargs={"reward_type": "dense"}).task
    assert dense.compute_reward(places, goal) == pytest.approx([-0.4, -0.6, -4.9, -5.1])


@pytest.mark.parametrize(
    ("level", "goal"),
    [("ant_maze_u12", 2), ("ant_fall_sparse", 3), ("ant_maze", 2), ("ant_fall", 3)],
)
def test_pose_goal_of_fallen_ant_is_not_reached(level, goal):
    task = parameters(level, kwargs={"shows_pose": True}).task
    lying = (math.cos(0.6), math.sin(0.6), 0.0, 0.0)  # turned by 1.2 around x: up is cos(1.2)
    qpos = np.zeros((3, task.load().nq))
    qpos[:, :3] = (1.0, 2.0, 0.5)
    qpos[:, 3:7] = (1, 0, 0, 0), lying, (0, 0.6, 0.8, 0)
    state = SimpleNamespace(
        qpos=qpos, qvel=np.zeros((3, task.load().nv)), userdata=np.zeros((3, goal))
    )
    seen = task.observation(state)
    assert seen["pose"][:, :2].tolist() == qpos[:, :2].tolist()
    assert seen["pose"][:, 2] == pytest.approx([1.0, math.cos(1.2), -1.0])
    assert seen["observation"][:, 2] == pytest.approx(qpos[:, 2] - task.floor_height)
    assert seen["achieved_goal"].tolist() == qpos[:, :goal].tolist()
    goals = task.subgoal_space
    asked = np.tile([*qpos[0, :2], 1.0], (3, 1))
    assert goals.reached(asked, seen).tolist() == [True, True, False]
    assert "pose" not in parameters(level).task.observation(state)


def test_stance_value_by_yaw():
    """By the feet, straight ahead of the hips."""
    task = parameters("ant_gaps", kwargs={"shows_pose": True, "shows_stance": True}).task
    model = task.load()
    data, widths, turns = mujoco.MjData(model), [], np.radians([0.0, 22.5, 45.0, 90.0, 200.0])
    qpos = np.zeros((len(turns), model.nq))
    qpos[:, 1] = 0.4
    qpos[:, 3], qpos[:, 6] = np.cos(turns / 2), np.sin(turns / 2)
    for row in qpos:
        data.qpos[:] = row
        mujoco.mj_forward(model, data)
        legs = data.geom_xpos[model.geom_type == mujoco.mjtGeom.mjGEOM_CAPSULE]
        widths.append(np.ptp(legs[:, 0]))
    shape = (len(turns), model.nv), (len(turns), 2)
    state = SimpleNamespace(qpos=qpos, qvel=np.zeros(shape[0]), userdata=np.zeros(shape[1]))
    seen = task.observation(state)
    assert seen["pose"][:, 3] == pytest.approx([1, 0, -1, 1, math.cos(math.radians(800))])
    assert np.argsort(seen["pose"][1:3, 3]).tolist() == np.argsort(widths[1:3])[::-1].tolist()
    assert widths[0] == pytest.approx(widths[3])
    goals = task.subgoal_space
    asked = np.tile([0.0, 0.0, 1.0, 1.0], (len(turns), 1))
    assert goals.reached(asked, seen).tolist() == [True, True, False, True, True]


@pytest.mark.parametrize("level", ["ant_reacher", "ant_four_rooms"])
def test_hac_pose_goal_needs_height(level):
    task = parameters(level, kwargs={"shows_pose": True}).task
    qpos = np.zeros((3, task.load().nq))
    qpos[:, :4] = (1.0, 2.0, 0.5, 1.0)
    qpos[1, 2] = 0.75  # too high
    qpos[2, 3:7] = (0.0, 1.0, 0.0, 0.0)  # on its back
    state = SimpleNamespace(
        qpos=qpos, qvel=np.zeros((3, task.load().nv)), userdata=np.zeros((3, 3))
    )
    seen = task.observation(state)
    assert seen["pose"].tolist() == [[1, 2, 0.5, 1], [1, 2, 0.75, 1], [1, 2, 0.5, -1]]
    goals = task.subgoal_space
    asked = np.tile([1.0, 2.0, 0.5, 1.0], (3, 1))
    assert goals.reached(asked, seen).tolist() == [True, False, False]
    assert "pose" not in parameters(level).task.observation(state)
    assert parameters(level).task.subgoal_space.size == 5  # with velocities, as in the paper
