"""The ant's workshop: what it shows, when a task is done, and the symmetry of its observations."""

from types import SimpleNamespace

import numpy as np
import pytest

from coach_rl.environments.goal_worlds.ant_workshop import (
    AWAY,
    CIRCLE,
    STAYS,
    WORKSHOP_OBSERVED,
    AntWorkshop,
    WorkshopSymmetry,
)
from coach_rl.environments.mujoco import MujocoState, MujocoTaskParameters, Scene
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.toy.workshop import ORDERS, TASKS
from coach_rl.extensions.testing import ENVIRONMENT_CHECKS, Trial

IDLE = np.zeros(8)
SHOWN = {name: number for number, name in enumerate(WORKSHOP_OBSERVED)}


class Room:
    """One simulator of a workshop, moved by hand."""

    def __init__(self, task="all", order=(0, 1, 2), seed=0):
        self.task = AntWorkshop(task=task)
        self.scene = Scene(self.task.load(), self.task.frame_skip)
        self.data = mujoco.MjData(self.scene.model)
        self.rng = np.random.default_rng(seed)
        self.task.reset(self.scene, self.data, self.rng)
        self.data.userdata[6] = ORDERS.tolist().index(list(order))
        mujoco.mj_forward(self.scene.model, self.data)
        self.point, self.plate, self.mark = self.data.userdata[:6].reshape(3, 2).copy()

    @property
    def state(self):
        arrays = {name: getattr(self.data, name)[None].copy() for name in self.task.reads}
        return MujocoState(self.scene, arrays)

    def seen(self, *names):
        observation = self.task.observation(self.state)["observation"][0]
        return [observation[SHOWN[name]] for name in names]

    def step(self, *, ant=None, pushes=False):
        """Reward, end and success of a step, after the ant was moved or the block was kicked."""
        if ant is not None:
            self.data.qpos[:7] = (*ant, 0.55, 1, 0, 0, 0)
            self.data.qvel[:14] = 0
        if pushes:
            self.data.qpos[15:] = self.data.userdata[4:6]
            self.data.qpos[15] += CIRCLE - 0.01
            self.data.qvel[14:] = (2, 0)
        before = self.state
        self.task.advance(self.scene, self.data, IDLE, self.rng)
        reward, ended, info = self.task.judge(before, IDLE[None], self.state)
        return reward[0], ended[0], info["is_success"][0]

    def do(self, task):
        """Rewards, ends and successes of the steps that do a task by hand, [3, steps]."""
        if task == "push":
            steps = [self.step(ant=(9, 9), pushes=True)]
        else:
            place = {"walk": self.point, "press": self.plate}[task]
            steps = [self.step(ant=place) for _ in range(STAYS[TASKS.index(task)])]
        return np.array(steps).T

    def turn(self, angle):
        """Turn everything about the vertical."""
        turn = np.exp(1j * angle)
        for array, first in [
            *((self.data.userdata, first) for first in (0, 2, 4)),
            *((self.data.qpos, first) for first in (0, 15)),
            (self.data.qvel, 0),
        ]:
            vector = complex(*array[first : first + 2]) * turn
            array[first : first + 2] = vector.real, vector.imag
        half = np.array([np.cos(angle / 2), 0, 0, np.sin(angle / 2)])
        turned = np.empty(4)
        mujoco.mju_mulQuat(turned, half, self.data.qpos[3:7])
        self.data.qpos[3:7] = turned


def canonical(room, task="due"):
    """The observation of a symmetric agent, [48], and what it sends for actions of 1 to 8, [8]."""
    parameters = MujocoTaskParameters(own_task=room.task, threads=1)
    environment = parameters.build(num_envs=1)
    symmetry = WorkshopSymmetry(task=task).build(SimpleNamespace(spaces=environment.spaces))
    environment.close()
    seen = room.task.observation(room.state)
    actions = np.arange(1.0, 9.0)[None]
    return symmetry.canonical(seen)["observation"][0], symmetry.restored(actions, seen)[0]


def test_ant_workshop_start_keeps_the_ant_away_from_everything():
    starts = [Room(seed=seed) for seed in range(50)]
    distances = [
        np.hypot(*(place - room.data.qpos[:2]))
        for room in starts
        for place in (room.point, room.plate, room.mark)
    ]
    assert min(distances) >= AWAY
    assert max(distances) < 5


def test_ant_workshop_observation_shows_ways_and_what_is_left():
    room = Room(order=(2, 0, 1))
    room.do("push")
    ant, block = room.data.qpos[:2], room.data.qpos[15:]
    assert room.seen("point_x", "point_y") == pytest.approx(room.point - ant)
    assert room.seen("plate_x", "plate_y") == pytest.approx(room.plate - ant)
    assert room.seen("block_x", "block_y") == pytest.approx(block - ant)
    assert room.seen("pushed_x", "pushed_y") == pytest.approx(block - room.mark)
    assert room.seen("walk_is_due", "press_is_second") == [1, 1]
    assert sum(room.seen(*WORKSHOP_OBSERVED[-9:])) == 2
    room.step(ant=room.plate)
    assert room.seen("at_point", "on_plate") == [0, 0.1]


@pytest.mark.parametrize("order", ORDERS.tolist())
def test_ant_workshop_tasks_in_their_order_reward_each_and_end(order):
    room = Room(order=order)
    rewards, ends, successes = np.hstack([room.do(TASKS[number]) for number in order])
    assert rewards.sum() == 3
    assert ends.tolist() == successes.tolist() == [0] * (len(ends) - 1) + [1]


def test_ant_workshop_task_before_its_turn_undoes_those_before():
    room = Room(order=(0, 1, 2))
    assert room.do("walk")[0].sum() == 1
    assert room.do("push")[0].tolist() == [-1]
    assert room.seen("walk_is_due", "press_is_second", "push_is_third") == [1, 1, 1]
    assert room.seen("pushed_x", "pushed_y") == [0, 0]
    rewards = [room.do(task)[0].sum() for task in ("walk", "press", "push")]
    assert rewards == [1, 1, 1]


@pytest.mark.parametrize("task", TASKS)
def test_ant_workshop_one_task_rewards_progress_and_ends_when_done(task):
    room = Room(task=task)
    rewards, ends, successes = room.do(task)
    assert ends.tolist() == successes.tolist() == [0] * (len(ends) - 1) + [1]
    assert rewards[-1] > 1
    others = Room(task=task)
    for other in TASKS:
        assert other == task or not others.do(other)[1:].any()


@pytest.mark.parametrize("task", ["all", "walk"])
def test_ant_workshop_ant_on_its_back_ends_with_a_loss(task):
    room = Room(task=task)
    room.data.qpos[:7] = (9, 9, 0.3, 0, 1, 0, 0)
    before = room.state
    reward, ended, info = room.task.judge(before, IDLE[None], before)
    assert (reward[0], ended[0], info["is_success"][0]) == (-1, True, False)


def test_ant_workshop_motor_noise_moves_an_idle_ant_by_its_own_stream():
    joints = []
    for noise, seed in [(0.0, 0), (0.2, 0), (0.2, 0), (0.2, 1)]:
        room = Room()
        room.task = AntWorkshop(motor_noise=noise)
        room.rng = np.random.default_rng(seed)
        room.step(ant=(9, 9))
        joints.append(room.data.qpos[7:15].tolist())
    still, noisy, again, other = joints
    assert still != noisy == again != other


@pytest.mark.parametrize("task", ["due", *TASKS])
@pytest.mark.parametrize("angle", [0.3, np.pi / 2, -2.0])
def test_workshop_symmetry_turned_world_looks_the_same(task, angle):
    room = Room(order=(1, 2, 0), seed=3)
    seen, sent = canonical(room, task)
    room.turn(angle)
    turned_seen, turned_sent = canonical(room, task)
    same = np.arange(len(seen)) > 1  # all but the place
    assert turned_seen[same] == pytest.approx(seen[same])
    assert turned_sent.tolist() == sent.tolist()


@pytest.mark.parametrize(
    ("task", "shown"), [("due", "plate"), ("walk", "point"), ("press", "plate"), ("push", "block")]
)
def test_workshop_symmetry_way_to_the_task_lies_ahead_and_to_the_left(task, shown):
    for seed in range(8):
        room = Room(order=(1, 2, 0), seed=seed)
        seen, _ = canonical(room, task)
        x, y = seen[SHOWN[f"{shown}_x"]], seen[SHOWN[f"{shown}_y"]]
        assert 0 <= y <= x


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("check", ENVIRONMENT_CHECKS, ids=lambda check: check.__name__)
def test_ant_workshop_keeps_the_contract_of_environments(check):
    params = MujocoTaskParameters(
        own_task=AntWorkshop(motor_noise=0.2), max_episode_steps=7, threads=2
    )
    check(Trial(build=lambda num_envs: params.build(num_envs=num_envs), steps=40))
