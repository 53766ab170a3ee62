"""Ant mazes with a chest that opens only to who has fetched the keys.

Mazes, keys, chests, radii, rewards and time limit are those of SSE (Hwang et al. 2026, "Strict
Subgoal Execution: Reliable Long-Horizon Planning in Hierarchical Reinforcement Learning",
`envs/antenv` of the authors' code).
"""

from functools import cached_property
from typing import ClassVar, Literal

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.environments.goal_worlds.ant_sparse_maze import SparseAntMaze
from coach_rl.environments.goal_worlds.maze_map import (
    ANT_DOUBLE_KEY_CHEST,
    ANT_KEY_CHEST,
    MazeMap,
)
from coach_rl.environments.mujoco import MujocoState, Scene
from coach_rl.environments.mujoco.engine import mujoco

_SIGNS = "123456789"
_KEY_REWARD, _CHEST_REWARD = 1.0, 5.0
_HALF_A_KEY = 0.5
"""Threshold of a number of keys in a goal: it must be met exactly."""
_KEY_COLOR = (0.2, 0.35, 0.9, 1)
_BURIED = -100.0
"""Height at which a key that was taken is out of sight, in metres."""


@parameter_class
class AntKeyChest(SparseAntMaze):
    """SSE's AntMazeKeyChest: fetch the key from a side way, then go to the chest, 40 m by 40 m.

    A goal is (x, y, keys): a place, and how many keys must have been taken. A key is taken within
    `goal_radius`, the keys of a map `1`, `2`, ... only in this order. The observation ends in a 1
    for each key that was taken and a 0 for each other.
    """

    max_episode_steps: ClassVar[int | None] = 3000
    goal_size: ClassVar[int] = 3
    place_elements: ClassVar[int] = 2

    terminate: bool = True
    """If True, opening the chest ends the episode."""
    maze: tuple[str, ...] = ANT_KEY_CHEST
    """Rows of the map, see `MazeMap`; `1` to `9` are keys."""
    reward_radius: Positive[float] = 5.0
    """Distance of the chest from which on a step is worth its reward, in metres."""
    sparse_rewards: Literal["stages", "goal"] = "stages"
    """stages: 1 where a key is taken, 5 at the chest with all keys, else 0, as in SSE. goal: 0 at
    the chest with all keys, else -1."""

    def __post_init__(self) -> None:
        super().__post_init__()
        signs = [sign for sign in _SIGNS for _ in self.map.cells(sign)]
        require(
            len(signs) > 0 and signs == list(_SIGNS[: len(signs)]),
            f"{type(self).__name__}.maze must have keys '1', '2' and so on, each once, got {signs}",
        )

    @cached_property
    def map(self) -> MazeMap:
        """The maze, checked."""
        return MazeMap(self.maze, more_signs=_SIGNS)

    @property
    def floor(self) -> str:
        """Signs of the cells in which a goal of training may lie."""
        return ".SG" + _SIGNS

    @cached_property
    def keys(self) -> FloatArray:
        """Places of the keys, [K, 2]."""
        signs = _SIGNS[: len(self.map.cells(_SIGNS))]
        return np.array([self.place(self.map.cells(sign)[0]) for sign in signs])

    @property
    def goal_space(self) -> GoalSpace:
        """The goals of the task: a place within `reward_radius`, and a number of keys."""
        low, high = self.extent
        return GoalSpace(
            low=(*low[:2], 0.0),
            high=(*high[:2], float(len(self.keys))),
            threshold=(self.reward_radius, self.reward_radius, _HALF_A_KEY),
            key="achieved_goal",
            reward=self.reward_type,
            reached_within="ball",
        )

    def spec(self) -> mujoco.MjSpec:
        """The maze, with a post where each key is."""
        spec = super().spec()
        spec.nuserdata = self.goal_size + 1  # the last one: how many keys were taken
        for number, _ in enumerate(self.keys):
            spec.worldbody.add_body(name=f"key_{number + 1}", mocap=True).add_site(
                type=mujoco.mjtGeom.mjGEOM_BOX, size=[0.6, 0.6, 1.0], rgba=_KEY_COLOR
            )
        return spec

    def target(self, rng: np.random.Generator) -> FloatArray:
        """Draw a place, as all sparse mazes do; with all keys, [3]."""
        return np.append(super().target(rng), float(len(self.keys)))

    def reset(self, scene: Scene, data: mujoco.MjData, rng: np.random.Generator) -> None:
        """No key is taken."""
        super().reset(scene, data, rng)
        data.userdata[-1] = 0.0
        data.mocap_pos[1:, :2] = self.keys
        data.mocap_pos[1:, 2] = 1.0

    def advance(
        self, scene: Scene, data: mujoco.MjData, action: FloatArray, rng: np.random.Generator
    ) -> None:
        """Simulate one step; the next key is taken where the ant has come near it."""
        super().advance(scene, data, action, rng)
        taken = int(data.userdata[-1])
        if taken < len(self.keys):
            x, y = data.qpos[:2] - self.keys[taken]
            if np.hypot(x, y) <= self.goal_radius:
                data.userdata[-1] = taken + 1
                data.mocap_pos[1 + taken, 2] = _BURIED

    def motion(self, state: MujocoState) -> FloatArray:
        """Positions and velocities of the ant, and a 0 or 1 for each key, [R, 29 + K]."""
        has = state.userdata[:, -1:] > np.arange(len(self.keys))
        return np.concatenate((super().motion(state), has), axis=1)

    def achieved_goal(self, state: MujocoState) -> FloatArray:
        """The place of the torso, and how many keys were taken, [R, 3]."""
        return np.concatenate((state.qpos[:, :2], state.userdata[:, -1:]), axis=1)

    def desired_goal(self, state: MujocoState) -> FloatArray:
        """The chest, and how many keys there are, [R, 3]."""
        return np.asarray(state.userdata[:, : self.goal_size])

    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        """Return where the place is within the goal's radius, with as many keys, [...]."""
        return self._near(achieved_goal, desired_goal, self.goal_radius)

    def judge(
        self, before: MujocoState, action: FloatArray, after: MujocoState
    ) -> tuple[FloatArray, BoolArray, dict[str, Array]]:
        """Return reward, termination and info of a step."""
        worth, terminated, info = super().judge(before, action, after)
        if self._is_staged:
            took_a_key = after.userdata[:, -1] > before.userdata[:, -1]
            worth = np.where((worth == 0) & took_a_key, _KEY_REWARD, worth)
        return worth, terminated, info

    @property
    def _is_staged(self) -> bool:
        return self.reward_type == "sparse" and self.sparse_rewards == "stages"

    def _near(self, achieved_goal: Array, desired_goal: Array, radius: float) -> BoolArray:
        away = np.asarray(achieved_goal) - desired_goal
        near = np.hypot(away[..., 0], away[..., 1]) <= radius
        return np.asarray(near & (np.abs(away[..., 2]) < _HALF_A_KEY))

    def _worth(self, achieved_goal: Array, desired_goal: Array, success: BoolArray) -> FloatArray:
        if self.reward_type == "dense":
            return super()._worth(achieved_goal, desired_goal, success)
        there = self._near(achieved_goal, desired_goal, self.reward_radius)
        return np.where(there, _CHEST_REWARD, 0.0) if self._is_staged else there - 1.0


@parameter_class
class AntDoubleKeyChest(AntKeyChest):
    """SSE's AntMazeDoubleKeyChest: a key, another one that counts only after it, the chest."""

    maze: tuple[str, ...] = ANT_DOUBLE_KEY_CHEST
    """Rows of the map, see `MazeMap`; `1` to `9` are keys."""
