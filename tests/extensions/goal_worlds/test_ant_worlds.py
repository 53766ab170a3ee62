"""The ant worlds: the ant itself, walls, blocks and gaps, goals as their papers state them."""

from importlib.resources import files

import mujoco
import numpy as np
import pytest
from every_goal_world import build

from coach_rl.environments import parameters
from coach_rl.environments.goal_worlds import ANT_OBSERVED, ant_elements
from coach_rl.environments.goal_worlds.ant import STANDING, add_ant, ground
from coach_rl.environments.goal_worlds.ant_mazes import (
    AntFall,
    AntFallSparse,
    AntMaze,
    AntPush,
    AntPushSparse,
)
from coach_rl.environments.goal_worlds.reacher import AntFourRooms, AntReacher

HAC = {"ant_reacher": AntReacher, "ant_four_rooms": AntFourRooms}
HIRO = {"ant_maze": AntMaze, "ant_push": AntPush, "ant_fall": AntFall}
MECHANICS = (
    *("body_mass", "body_inertia", "body_ipos", "body_iquat", "body_pos", "body_quat"),
    *("jnt_type", "jnt_range", "jnt_axis", "jnt_pos", "jnt_limited", "jnt_bodyid", "jnt_stiffness"),
    *("dof_armature", "dof_damping", "dof_frictionloss", "qpos0"),
    *("geom_type", "geom_pos", "geom_quat", "geom_friction", "geom_margin", "geom_solref"),
    *("geom_solimp", "geom_contype", "geom_conaffinity", "geom_condim", "geom_bodyid"),
    *("actuator_gear", "actuator_ctrlrange", "actuator_trnid", "actuator_ctrllimited"),
)


@pytest.fixture(scope="module")
def gymnasiums_ant():
    path = files("gymnasium") / "envs" / "mujoco" / "assets" / "ant.xml"
    return mujoco.MjModel.from_xml_path(str(path))


@pytest.fixture(scope="module")
def our_ant():
    spec = ground("ant", timestep=0.01, half_side=40, impedance=None)
    add_ant(spec, height=0.0, gear=150)
    return spec.compile()


@pytest.mark.parametrize("name", MECHANICS)
def test_ant_model_equals_gymnasium(gymnasiums_ant, our_ant, name):
    np.testing.assert_array_equal(getattr(our_ant, name), getattr(gymnasiums_ant, name))


def test_ant_motion_equals_gymnasium(gymnasiums_ant, our_ant):
    ours, theirs = mujoco.MjData(our_ant), mujoco.MjData(gymnasiums_ant)
    rng = np.random.default_rng(0)
    most_contacts = 0
    for _ in range(40):
        ours.ctrl[:] = theirs.ctrl[:] = rng.uniform(-1, 1, 8)
        mujoco.mj_step(our_ant, ours, 5)
        mujoco.mj_step(gymnasiums_ant, theirs, 5)
        most_contacts = max(most_contacts, ours.ncon)
    np.testing.assert_array_equal(ours.qpos, theirs.qpos)
    np.testing.assert_array_equal(ours.qvel, theirs.qvel)
    assert most_contacts > 0


def test_sizes_of_the_ant(our_ant):
    # Torso 0.25 m, legs 0.08 m; thighs and shoulders lead 0.2 m along x and y, shins 0.4 m.
    assert our_ant.nbody == 14
    spheres = our_ant.geom_type == mujoco.mjtGeom.mjGEOM_SPHERE
    capsules = our_ant.geom_type == mujoco.mjtGeom.mjGEOM_CAPSULE
    assert our_ant.geom_size[spheres, 0] == pytest.approx([0.25])
    assert our_ant.geom_size[capsules, 0] == pytest.approx([0.08] * 12)
    half = np.sort(our_ant.geom_size[capsules, 1])
    assert half == pytest.approx([0.1 * 2**0.5] * 8 + [0.2 * 2**0.5] * 4)
    assert our_ant.body_mass.sum() == pytest.approx(0.9109, abs=1e-4)


def test_ant_elements_are_found_by_name():
    assert len(ANT_OBSERVED) == len(set(ANT_OBSERVED)) == 29
    assert ant_elements("x", "y", "z", "x_velocity", "y_velocity") == (0, 1, 2, 15, 16)
    assert ant_elements("hip_1", "ankle_4", "ankle_4_velocity") == (7, 14, 28)


@pytest.mark.parametrize("level", [*HAC, *HIRO])
def test_named_elements_equal_the_simulator(level):
    batch = build(level)
    batch.reset(seed=0)
    rng = np.random.default_rng(0)
    for _ in range(3):
        batch.send(rng.uniform(-1, 1, (1, 8)).astype(np.float32))
        seen = batch.recv().observation
    values = dict(zip(ANT_OBSERVED, seen["observation"][0], strict=True))
    data, model = batch.simulators.data[0], batch.scene.model
    mujoco.mj_forward(model, data)  # a step leaves the bodies where its last stage had them
    for joint in ("hip_1", "ankle_1", "hip_3", "ankle_4"):
        assert values[joint] == data.joint(joint).qpos[0]
        assert values[f"{joint}_velocity"] == data.joint(joint).qvel[0]
    torso = data.body("torso")
    place = [values[name] for name in "xyz"]
    np.testing.assert_allclose(place, torso.xpos, atol=1e-12)
    orientation = [values[f"quaternion_{name}"] for name in "wxyz"]
    np.testing.assert_allclose(orientation, torso.xquat, atol=1e-12)
    for is_local, first in ((0, "x_velocity"), (1, "roll_velocity")):
        motion = np.zeros(6)  # angular, linear
        mujoco.mj_objectVelocity(
            model, data, mujoco.mjtObj.mjOBJ_XBODY, model.body("torso").id, motion, is_local
        )
        index = ANT_OBSERVED.index(first)
        part = motion[:3] if is_local else motion[3:]
        np.testing.assert_allclose(seen["observation"][0, index : index + 3], part, atol=1e-9)
    size = seen["achieved_goal"].shape[1]
    np.testing.assert_array_equal(seen["achieved_goal"], seen["observation"][:, :size])
    batch.close()


@pytest.mark.parametrize(
    ("level", "limit", "frame_skip", "gear"),
    [
        ("ant_reacher", 500, 15, 16),
        ("ant_four_rooms", 700, 15, 15),
        ("ant_maze", 500, 5, 30),
        ("ant_push", 500, 5, 30),
        ("ant_fall", 500, 5, 30),
    ],
)
def test_steps_torques_and_time_limits(level, limit, frame_skip, gear):
    task = parameters(level).task
    model = task.load()
    assert (task.max_episode_steps, task.frame_skip) == (limit, frame_skip)
    assert model.opt.timestep == 0.02
    assert model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4
    assert (model.actuator_gear[:, 0] == gear).all()
    assert (model.actuator_ctrlrange == [-1, 1]).all()


def start(task, place, height=0.0):
    """An ant that stands somewhere, and its model."""
    model = task.load()
    data = mujoco.MjData(model)
    data.qpos[:15] = STANDING
    data.qpos[:2] = place
    data.qpos[2] += height
    return model, data


def drag(model, data, way, *, seconds=6.0, speed=4.0):
    """Pull the ant by its torso along a way; where it has come to, [3]."""
    torso = model.body("torso").id
    for place in way:
        for _ in range(round(seconds / model.opt.timestep)):
            left = np.subtract(place, data.qpos[:2])
            wanted = left * min(2.0, speed / max(float(np.hypot(*left)), 1e-9))
            data.xfrc_applied[torso, :2] = 20 * (wanted - data.qvel[:2])
            mujoco.mj_step(model, data)
            if np.hypot(*left) < 0.1:
                break
        data.xfrc_applied[:] = 0
    assert not data.warning.number.any()
    return data.qpos[:3].copy()


def wait(model, data, seconds):
    mujoco.mj_step(model, data, round(seconds / model.opt.timestep))


@pytest.mark.parametrize(
    ("task", "begin", "end", "stops_near"),
    [
        (AntReacher(), (9, 0), (16, 0), (11.5, 0)),
        (AntReacher(), (0, -9), (0, -16), (0, -11.5)),
        (AntFourRooms(), (5, 5), (5, 12), (5, 7.7)),
        (AntFourRooms(), (2.5, 4), (-8, 4), None),  # a door: 3.5 to 6.5
        (AntFourRooms(), (2.5, 2), (-8, 2), (0.8, 2)),
        (AntFourRooms(), (-2, -3), (-2, 5), (-2, -0.8)),
        (AntFourRooms(), (7.2, 3), (7.2, -5), (7.2, 0.8)),  # beyond the door
        (AntFourRooms(), (5, 3), (5, -5), None),
        (AntMaze(), (0, 0), (0, 16), (0, 3.7)),
        (AntMaze(), (0, 0), (-9, 0), (-3.7, 0)),
        (AntPush(), (-8, 8), (-8, 16), (-8, 11.7)),
    ],
)
def test_walls_stop_the_ant_doors_do_not(task, begin, end, stops_near):
    model, data = start(task, begin)
    there = drag(model, data, [end])[:2]
    if stops_near is None:
        assert np.hypot(*(there - end)) < 1.5
        return
    direction = np.sign(np.subtract(end, begin))
    # Not through the wall, and up to it: the torso is held off by the legs at most.
    assert (direction * (there - stops_near)).max() < 0.1
    assert np.hypot(*(there - stops_near)) < 1.3


def test_maze_way_around_the_wall_is_free():
    model, data = start(AntMaze(), (0, 0))
    there = drag(model, data, [(16, 0), (16, 16), (0, 16)], seconds=9)
    assert there[:2] == pytest.approx([0, 16], abs=0.3)


@pytest.mark.parametrize("task", [AntPush(), AntPushSparse()], ids=["hiro", "hess"])
def test_push_straight_ahead_blocks_the_way(task):
    cell = task.cell_size
    model, data = start(task, (0, 0))
    there = drag(model, data, [(0, 2.4 * cell)], seconds=12)
    x, y = data.qpos[15:]
    assert (abs(x) < 0.1, y > 0.98 * cell) == (True, True)  # the block sits in the way up
    assert not task.reached(there[:2], np.array([0, 2.4 * cell]))


@pytest.mark.parametrize("task", [AntPush(), AntPushSparse()], ids=["hiro", "hess"])
def test_push_from_the_left_opens_the_way(task):
    cell = task.cell_size
    model, data = start(task, (0, 0))
    wait(model, data, 0.5)
    assert np.abs(data.qpos[15:]).max() < 0.05
    drag(model, data, [(-cell, 0), (-cell, cell), (0.4 * cell, cell)], seconds=10)
    assert data.qpos[15] > 0.85 * cell
    there = drag(model, data, [(0, cell), (0, 2.1 * cell)], seconds=10)
    assert task.reached(there[:2], np.array([0, 2.2 * cell]))


@pytest.mark.parametrize("task", [AntFall(), AntFallSparse()], ids=["hiro", "hess"])
def test_fall_into_gap_is_final(task):
    cell, floor = task.cell_size, task.floor_height
    model, data = start(task, (0, cell), floor)
    assert drag(model, data, [(0, 1.25 * cell)])[2] > floor + 0.2
    there = drag(model, data, [(0, 2 * cell), (0, 3.4 * cell)], seconds=5)
    assert there[1] < 2.5 * cell
    assert there[2] < 0.5 * floor
    assert not task.reached(there, np.array([0, 3.4 * cell, floor + 0.5]))


@pytest.mark.parametrize("task", [AntFall(), AntFallSparse()], ids=["hiro", "hess"])
def test_fall_is_crossed_over_the_block(task):
    cell, floor = task.cell_size, task.floor_height
    model, data = start(task, (cell, 0), floor)
    wait(model, data, 0.5)
    assert np.abs(data.qpos[15:]).max() < 0.05
    drag(model, data, [(cell, 1.5 * cell)], seconds=8)
    drag(model, data, [(cell, 1.25 * cell)], seconds=2)
    wait(model, data, 2)
    assert data.qpos[15:] == pytest.approx([cell, -floor], abs=0.1)  # it fills the gap
    there = drag(model, data, [(cell, 3 * cell), (0, 3.1 * cell)], seconds=8)
    assert there[2] > floor + 0.2
    assert task.reached(there, np.array([0, 3.2 * cell, floor + 0.5]))


@pytest.mark.parametrize("task", [AntPush(), AntFallSparse()])
def test_block_contact_margin_equals_mujoco_2(task):
    model = task.load()
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    names = [model.body(body).name for body in model.geom_bodyid]
    margins = [
        contact.includemargin
        for contact in data.contact
        if any(names[geom].startswith("block_") for geom in contact.geom)
    ]
    assert set(margins) == {0.01}


@pytest.mark.parametrize(("level", "task"), HAC.items())
def test_hac_starts_and_goals(level, task):
    batch = build(level, 300)
    seen = batch.reset(seed=0).observation
    starts, goals = seen["observation"], seen["desired_goal"]
    np.testing.assert_array_equal(starts[:, 2:15], np.tile(STANDING[2:], (300, 1)))
    assert (starts[:, 15:] == 0).all()
    assert ((goals[:, 2] >= 0.45) & (goals[:, 2] <= 0.55)).all()
    both = np.concatenate((starts[:, :2], goals[:, :2]))
    if task is AntReacher:
        assert 9 < np.abs(both).max() <= 9.5
        distance = np.hypot(*(starts[:, :2] - goals[:, :2]).T)
        assert 8 <= distance.min() < 8.2
    else:
        assert (np.abs(both) >= 3).all()
        assert 6.4 < np.abs(both).max() <= 6.5
        rooms = both > 0
        assert (rooms[:300] != rooms[300:]).any(axis=1).all()
        assert len(np.unique(np.concatenate((rooms[:300], rooms[300:]), axis=1), axis=0)) == 12
    batch.close()


@pytest.mark.parametrize(
    ("task", "threshold", "velocity", "side"),
    [(AntReacher(), (0.5, 0.5, 0.2), 0.5, 11.75), (AntFourRooms(), (0.4, 0.4, 0.2), 0.8, 8.0)],
)
def test_hac_thresholds_and_subgoals(task, threshold, velocity, side):
    goal = np.array([1.0, -2.0, 0.5])
    for element, largest in enumerate(threshold):
        for share, expected in ((0.99, True), (1.01, False)):
            away = goal.copy()
            away[element] += share * largest
            assert task.reached(away, goal) == expected
            assert task.compute_reward(away, goal) == (0 if expected else -1)
    subgoals = task.subgoal_space
    assert subgoals.low == (-side, -side, 0, -3, -3)
    assert subgoals.high == (side, side, 1, 3, 3)
    assert subgoals.threshold == (*threshold, velocity, velocity)
    assert subgoals.elements == (0, 1, 2, 15, 16)
    assert task.goal_space.threshold == threshold


def test_hiro_subgoals_are_relative_and_never_clipped():
    task = AntPush()
    subgoals = task.subgoal_space
    reach = (10, 10, 0.5, 1, 1, 1, 1, 0.5, 0.3, 0.5, 0.3, 0.5, 0.3, 0.5, 0.3)
    assert subgoals.elements == tuple(range(15))
    assert subgoals.space.high == pytest.approx(reach)
    batch = build("ant_push", 3)
    observation = batch.reset(seed=0).observation
    for action in (subgoals.space.low, subgoals.space.high):
        target = subgoals.target(np.tile(action, (3, 1)), observation)
        expected = observation["observation"][:, :15] + action
        np.testing.assert_allclose(target, expected, atol=1e-5)
    batch.close()


@pytest.mark.parametrize(
    ("level", "trained", "evaluated"),
    [
        ("ant_maze", None, [0, 16]),
        ("ant_push", [0, 19], [0, 19]),
        ("ant_fall", [0, 27, 4.5], [0, 27, 4.5]),
    ],
)
def test_hiro_targets(level, trained, evaluated):
    batch = build(level, 300)
    goals = batch.reset(seed=0).observation["desired_goal"]
    if trained is None:
        assert goals.min() == pytest.approx(-4, abs=0.2)
        assert goals.max() == pytest.approx(20, abs=0.2)
        assert goals.mean(axis=0) == pytest.approx([8, 8], abs=1)
    else:
        np.testing.assert_array_equal(goals, np.tile(trained, (300, 1)))
    batch.close()
    batch = build(level, 3, targets="evaluation")
    goals = batch.reset(seed=0).observation["desired_goal"]
    np.testing.assert_array_equal(goals, np.tile(evaluated, (3, 1)))
    batch.close()


@pytest.mark.parametrize("level", HIRO)
def test_hiro_orientations_and_rewards(level):
    batch = build(level, 100, targets="evaluation")
    turns = batch.reset(seed=0).observation["observation"][:, 3:7]
    assert (turns**2).sum(axis=1) == pytest.approx(np.ones(100))
    assert 0.08 < np.abs(turns[:, 1:]).max() < 0.12
    batch.send(np.zeros((100, 8), np.float32))
    answer = batch.recv()
    away = answer.observation["achieved_goal"] - answer.observation["desired_goal"]
    np.testing.assert_allclose(answer.reward, -np.sqrt((away**2).sum(axis=1)))
    assert not answer.info["is_success"].any()
    batch.close()


def test_hiro_reaches_within_five_metres_and_continues():
    near = {"evaluation_targets": ((3.0, 3.0), (3.0, 3.0)), "targets": "evaluation"}
    batch = build("ant_maze", 2, **near)
    batch.reset(seed=0)
    batch.send(np.zeros((2, 8), np.float32))
    answer = batch.recv()
    assert answer.info["is_success"].all()
    assert not answer.terminated.any()
    batch.close()
    task = AntFall()
    goal = np.array([0, 27, 4.5])
    assert task.reached(np.array([3, 23, 4.5]), goal)
    assert not task.reached(np.array([3, 23, 4.7]), goal)
    assert not task.reached(np.array([0, 22.5, 0.5]), goal)  # in the gap is not near enough


def test_observe_block_appends_its_place():
    hidden, seen = build("ant_fall"), build("ant_fall", observe_block=True)
    assert hidden.spaces.observation["observation"].shape == (29,)
    first = seen.reset(seed=0).observation["observation"][0]
    assert first[29:].tolist() == [8, 8, 6]
    data = seen.simulators.data[0]
    data.qpos[15:] = 2.0, -1.0
    seen.send(np.zeros((1, 8), np.float32))
    now = seen.recv().observation["observation"][0, 29:]
    np.testing.assert_allclose(now, data.body("block_3_2").xpos, atol=0.05)
    hidden.close()
    seen.close()


def test_conditions_are_the_places_of_blocks():
    batch, blocks = build("ant_push", observe_block=True), AntPush(observe_block=True).conditions
    assert blocks.elements == (29, 30)
    assert blocks.low == pytest.approx((-0.15, 7.85))
    assert blocks.high == pytest.approx((0.15, 8.15)), "moved, or not"
    batch.reset(seed=0)
    batch.simulators.data[0].qpos[15:] = 7.0, 0.0
    batch.send(np.zeros((1, 8), np.float32))
    assert blocks.achieved(batch.recv().observation)[0] == pytest.approx([7.0, 8.0], abs=0.1)
    batch.close()
    falls = AntFall(observe_block=True).conditions
    assert falls.elements == (31,), "whether it fell"
    assert (*falls.low, *falls.high) == pytest.approx((5.85, 6.15))
    assert AntPush().conditions is None, "what is not observed"
    assert AntMaze(observe_block=True).conditions is None


def test_custom_maze_of_ant_push():
    corridor = {"maze": ("#####", "#S.B#", "#####"), "cell_size": 4.0, "observe_block": True}
    batch = build("ant_push", **corridor)
    assert batch.reset(seed=0).observation["observation"][0, 29:].tolist() == [8, 0, 2]
    batch.close()
