"""The workshop of `coach_rl.environments.toy.workshop` with an ant instead of a ball."""

from typing import ClassVar, Literal

import numpy as np

from coach_rl.core.agents import AgentContext
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative, Positive
from coach_rl.core.records import Array, FloatArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.typed_values import FrozenMapping
from coach_rl.environments.goal_worlds.ant import (
    GOAL_COLOR,
    LEGS,
    OBSERVED,
    POSITIONS,
    VELOCITIES,
    AntSymmetry,
    AntTurns,
    add_ant,
    frame_scene,
    ground,
)
from coach_rl.environments.goal_worlds.goal_task import add_goal_disc, set_damping
from coach_rl.environments.mujoco import MujocoState, MujocoTask, Scene
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.mujoco.task import Judgement
from coach_rl.environments.toy.workshop import ORDERS, TASKS, counted

NEAR = 0.5
"""Distance at which the ant is at the point or on the plate, in metres."""
STAYS = (3, 10)
"""Steps that the ant has to stay at the point, and on the plate, without a break."""
CIRCLE = 0.5
"""Distance from its mark to which the block is to be pushed, in metres."""
AWAY = 1.2
"""Smallest distance of the start from point, plate and block, in metres."""
_RING = (1.2, 2.0)
"""Distance of point, plate and block from the middle, in metres."""
_SPREAD = 0.3
_FIELD = 2.0
"""Largest angle from three even directions, in radians; half the side of the starts' square."""
_START_HEIGHT = 0.65
"""Height of the torso at the start, in metres: no leg is in the ground."""
_HIP = 0.5
_ANKLE = (0.55, 1.2)
_VELOCITY = 0.5
"""Largest angle of a hip at the start, range of an ankle's, standard deviation of velocities."""
_BLOCK_RADIUS = 0.3
_BLOCK_HEIGHT = 1.0
_BLOCK_MASS = 0.1
_BLOCK_DAMPING = 1.0
_POINT = slice(0, 2)
_PLATE = slice(2, 4)
_MARK = slice(4, 6)
_ORDER = 6
_DONE = 7
_STAYED = slice(8, 10)
"""Elements of the user data: three places, the order's number, tasks done, steps stayed."""
_ANT = POSITIONS + VELOCITIES
_WAYS = {"walk": _ANT, "press": _ANT + 2, "push": _ANT + 4}
"""First element of the vector from the ant to point, plate and block in the observation."""
_DUE = slice(_ANT + 10, _ANT + 13)
"""Elements of the observation that are a one-hot code of the task whose turn it is."""
_PLATE_COLOR, _MARK_COLOR = (0.3, 0.7, 0.4, 0.8), (0.9, 0.6, 0.5, 0.6)
_BLOCK_COLOR = (0.75, 0.25, 0.2, 1)
WORKSHOP_OBSERVED = (
    *OBSERVED,
    *(f"{name}_{axis}" for name in ("point", "plate", "block", "pushed") for axis in "xy"),
    *("at_point", "on_plate"),
    *(f"{task}_is_{turn}" for turn in ("due", "second", "third") for task in TASKS),
)
"""Names of the elements of the observation: the ant's; the way to point, plate and block, and that
of the block from its mark, in the world's axes; parts of the time to stay; what is left of the
order, as one-hot codes."""


@parameter_class
class AntWorkshop(MujocoTask):
    """An ant does three tasks in an order that each episode draws and shows, or one of them alone.

    All three: each task done in its turn is rewarded with 1, and the last ends the episode. One
    done before its turn undoes those before, which costs as much; the block's mark is then where
    the block is. One task alone: the reward is the progress towards it, and 1 when it is done,
    which ends the episode. An ant that has turned over ends the episode and loses 1.
    """

    reads: ClassVar[tuple[str, ...]] = ("qpos", "qvel", "userdata")
    max_episode_steps: ClassVar[int | None] = 300

    frame_skip: int = 5
    default_camera_config: FrozenMapping[str] | None = FrozenMapping[str](
        {"azimuth": 90.0, "elevation": -65.0}
    )
    task: Literal["all", "walk", "press", "push"] = "all"
    """The task; all: the three in order."""
    gear: Positive[float] = 30.0
    """Torque of a motor at an action of 1, in newton metres."""
    motor_noise: NonNegative[float] = 0.0
    """Standard deviation of the noise on each action, which keeps an ant from standing still for
    good."""

    @property
    def level(self) -> str:
        return f"ant_workshop_{self.task}"

    def load(self) -> mujoco.MjModel:
        """An ant on a plane, three discs, and a round block that slides."""
        spec = ground("ant_workshop", timestep=0.02, half_side=20.0, impedance=None)
        spec.option.integrator = mujoco.mjtIntegrator.mjINT_IMPLICITFAST  # a third of RK4's time
        spec.nuserdata = 10
        frame_scene(spec, (0.0, 0.0, 0.0), 6.0)
        add_ant(spec, height=0.0, gear=self.gear)
        block = spec.worldbody.add_body(name="block", pos=[0, 0, _BLOCK_HEIGHT / 2 + 0.02])
        block.add_geom(
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            size=[_BLOCK_RADIUS, _BLOCK_HEIGHT / 2, 0],
            mass=_BLOCK_MASS,
            margin=0,
            rgba=_BLOCK_COLOR,
        )
        for axis in "xy":
            slide = block.add_joint(
                name=f"block_{axis}",
                type=mujoco.mjtJoint.mjJNT_SLIDE,
                axis=[axis == other for other in "xyz"],
            )
            set_damping(slide, _BLOCK_DAMPING)
        for name, radius, rgba in (
            ("point", NEAR, GOAL_COLOR),
            ("plate", NEAR, _PLATE_COLOR),
            ("mark", CIRCLE, _MARK_COLOR),
        ):
            add_goal_disc(spec, radius, rgba, name)
        return spec.compile()

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        """Point, plate and block in three directions from the middle; the ant away from them."""
        del scene
        directions = 2 * np.pi / 3 * rng.permutation(3) + rng.uniform(0, 2 * np.pi)
        directions += rng.uniform(-_SPREAD, _SPREAD, 3)
        places = (rng.uniform(*_RING, 3) * np.exp(1j * directions)).view(np.float64).reshape(3, 2)
        start = rng.uniform(-_FIELD, _FIELD, 2)
        while np.hypot(*(places - start).T).min() < AWAY:
            start = rng.uniform(-_FIELD, _FIELD, 2)
        half_yaw = rng.uniform(0, np.pi)
        data.qpos[:7] = (*start, _START_HEIGHT, np.cos(half_yaw), 0, 0, np.sin(half_yaw))
        data.qpos[7:POSITIONS:2] = rng.uniform(-_HIP, _HIP, len(LEGS))
        data.qpos[8:POSITIONS:2] = [leg.bends * rng.uniform(*_ANKLE) for leg in LEGS]
        data.qvel[:VELOCITIES] = _VELOCITY * rng.standard_normal(VELOCITIES)
        data.qpos[POSITIONS:] = places[2]
        data.userdata[: _MARK.stop] = places.reshape(-1)
        data.userdata[_ORDER] = rng.integers(len(ORDERS))
        # What is shown of the other tasks means nothing.
        data.userdata[_DONE] = 0 if self.task == "all" else rng.integers(len(TASKS))
        data.userdata[_STAYED] = 0
        data.mocap_pos[:, :2] = places

    def advance(
        self, scene: Scene, data: mujoco.MjData, action: FloatArray, rng: np.random.Generator
    ) -> None:
        was_in = _length(data.qpos[POSITIONS:] - data.userdata[_MARK]) < CIRCLE
        if self.motor_noise > 0:
            action = action + self.motor_noise * rng.standard_normal(len(action))
        super().advance(scene, data, action, rng)
        own = data.userdata
        stayed = data.userdata[_STAYED]
        finished = [False, False, was_in and _length(data.qpos[POSITIONS:] - own[_MARK]) >= CIRCLE]
        for number, place in enumerate((_POINT, _PLATE)):
            is_there = _length(data.qpos[:2] - own[place]) <= NEAR
            before = stayed[number]
            stayed[number] = min(before + 1, STAYS[number]) if is_there else 0
            finished[number] = before < stayed[number] == STAYS[number]
        if self.task != "all":
            own[_DONE] = len(TASKS) if finished[TASKS.index(self.task)] else own[_DONE]
        elif any(finished):
            order = ORDERS[[int(own[_ORDER])]]
            done = own[[_DONE]].astype(np.int64)
            now, is_early = counted(order, done, np.array([finished]))
            own[_DONE] = now[0]
            if is_early[0]:
                stayed[:] = 0
                own[_MARK] = data.qpos[POSITIONS:]
                data.mocap_pos[2, :2] = own[_MARK]

    def observation(self, state: MujocoState) -> dict[str, Array]:
        """The elements of `WORKSHOP_OBSERVED`, [R, 48]."""
        own = state.userdata
        place = state.qpos[:, :2]
        block = state.qpos[:, POSITIONS:]
        turns = own[:, [_DONE]].astype(np.int64) + np.arange(len(TASKS))  # [R, 3]
        order = np.pad(ORDERS, ((0, 0), (0, len(TASKS))), constant_values=len(TASKS))
        left = np.take_along_axis(order[own[:, _ORDER].astype(np.int64)], turns, axis=1)
        return {
            "observation": np.concatenate(
                [
                    state.qpos[:, :POSITIONS],
                    state.qvel[:, :VELOCITIES],
                    own[:, _POINT] - place,
                    own[:, _PLATE] - place,
                    block - place,
                    block - own[:, _MARK],
                    own[:, _STAYED] / STAYS,
                    np.eye(len(TASKS) + 1, len(TASKS))[left].reshape(len(own), -1),
                ],
                axis=1,
            )
        }

    def judge(self, before: MujocoState, action: FloatArray, after: MujocoState) -> Judgement:
        """Rewards, ends and successes, [R] each."""
        del action
        success = after.userdata[:, _DONE] == len(TASKS)
        fallen = 2 * (after.qpos[:, 4:6] ** 2).sum(axis=1) > 1  # its own axis points down
        if self.task == "all":
            reward = after.userdata[:, _DONE] - before.userdata[:, _DONE]
        else:
            reward = self._potential(after) - self._potential(before) + success
        return reward - fallen, success | fallen, {"is_success": success & ~fallen}

    def _potential(self, state: MujocoState) -> FloatArray:
        """The potential of the only task: the nearer to being done, the higher."""
        own = state.userdata
        place = state.qpos[:, :2]
        block = state.qpos[:, POSITIONS:]
        if self.task == "push":
            return 2 * _length(block - own[:, _MARK]) - _length(block - place)
        number = TASKS.index(self.task)
        stayed = own[:, _STAYED.start + number] / STAYS[number]
        return stayed - _length(own[:, (_POINT, _PLATE)[number]] - place)


@parameter_class
class WorkshopSymmetry(AntSymmetry):
    """Observations in which what a task is about lies ahead of the ant, and to its left."""

    task: Literal["due", "walk", "press", "push"] = "due"
    """The task; due: the one whose turn it is."""

    def build(self, context: AgentContext) -> AntTurns:
        """The symmetry of an ant in a workshop; SpaceError for other observations."""
        return WorkshopTurns(self, context.spaces)


class WorkshopTurns(AntTurns):
    """Turned observations of a workshop."""

    def __init__(self, params: WorkshopSymmetry, level_spaces: EnvironmentSpaces) -> None:
        firsts = (*_WAYS.values(), _ANT + 6)
        super().__init__(params, level_spaces, tuple(("observation", first) for first in firsts))
        if params.task == "due":
            self.due = _DUE
        else:
            own = ("observation", _WAYS[params.task])
            self.vectors = (own, *(each for each in self.vectors if each != own))

    def way(self, observation: Observation) -> Array:
        seen = observation["observation"]
        first = np.full(len(seen), self.vectors[0][1])
        if self.due is not None:
            first += 2 * seen[:, self.due].argmax(axis=1)
        rows = np.arange(len(seen))
        return np.asarray(seen[rows, first] + 1j * seen[rows, first + 1])


def _length(vectors: Array) -> FloatArray:
    length: FloatArray = np.sqrt((vectors**2).sum(axis=-1))
    return length
