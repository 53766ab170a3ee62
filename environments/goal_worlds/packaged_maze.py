"""Mazes of other packages, stepped here: their models and rules, without their Python loop."""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from coach_rl.core.frozen import FrozenMapping
from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.environments.goal_worlds.ant_body import GROUND_COLOR
from coach_rl.environments.goal_worlds.ant_task import GOAL_COLOR, WALL_COLOR, look_at
from coach_rl.environments.goal_worlds.goal_task import GoalTask
from coach_rl.environments.mujoco import MujocoState
from coach_rl.environments.mujoco.engine import mujoco

_FROM_ABOVE = FrozenMapping[str]({"azimuth": 90.0, "elevation": -89.9})
_UNSEEN = (0.0, 0.0, 0.0, 0.0)
_DIM, _NONE = (0.15,) * 3, (0.0,) * 3
_COLORS = {mujoco.mjtGeom.mjGEOM_PLANE: GROUND_COLOR, mujoco.mjtGeom.mjGEOM_BOX: WALL_COLOR}


@dataclass(frozen=True)
class Layout:
    """A maze as its package has built it."""

    model: str
    """MJCF text."""
    low: tuple[float, float]
    """Lower ends of the floor along x and y, in metres."""
    high: tuple[float, float]
    """Upper ends of the floor along x and y, in metres."""
    starts: FloatArray
    """Middles of the cells in which episodes may start, [S, 2]."""
    goals: FloatArray
    """Middles of the cells in which goals may lie, [G, 2]."""


@parameter_class
class PackagedMaze(GoalTask):
    """A maze whose model and cells a package gives; its goals are places, x and y.

    Rewards are those of all goal worlds. The package is needed as soon as a world is built or asked
    for its goals.
    """

    mark: ClassVar[str]
    """Name of the package's own mark of the goal, which is one for all simulators of the model."""

    default_camera_config: FrozenMapping[str] | None = _FROM_ABOVE
    camera_id: int | None = -1
    """Render from this camera of the model; -1: from above, the whole maze."""
    goal_radius: Positive[float] = 0.5
    """Distance at which the goal is reached, in metres."""
    subgoal_radius: Positive[float] = 0.5
    """Distance at which a sub-goal of a hierarchy is reached, in metres."""

    @property
    @abstractmethod
    def layout(self) -> Layout:
        """The maze.

        Raises:
            ConfigurationError: The package is not installed.
        """

    @property
    def goal_space(self) -> GoalSpace:
        """Places in the maze, reached within `goal_radius`."""
        return self._places(self.goal_radius)

    @property
    def subgoal_space(self) -> GoalSpace:
        """Places in the maze, reached within `subgoal_radius`."""
        return self._places(self.subgoal_radius)

    def spec(self) -> mujoco.MjSpec:
        """The package's model, and a disc where the row's goal is."""
        layout = self.layout
        spec = mujoco.MjSpec.from_string(layout.model)
        spec.nuserdata = 2
        low, high = np.array(layout.low), np.array(layout.high)
        look_at(spec, (*(low + high) / 2, 0.0), 0.95 * float((high - low).max()))
        for light in spec.lights:
            light.ambient, light.diffuse, light.specular = _DIM, _DIM, _NONE
        for theirs in (spec.site(self.mark), spec.geom(self.mark)):
            if theirs is not None:
                theirs.material, theirs.rgba = "", _UNSEEN
        for geom in spec.worldbody.geoms:
            if geom.type in _COLORS:
                geom.material, geom.rgba = "", _COLORS[geom.type]
        mark = spec.worldbody.add_body(name="goal_of_the_row", mocap=True)
        mark.add_site(
            pos=[0, 0, 0.05],  # clear of the floor, or both would flicker
            type=mujoco.mjtGeom.mjGEOM_CYLINDER,
            size=[self.goal_radius, 0.01, 0.01],
            rgba=(*GOAL_COLOR[:3], 1.0),
        )
        return spec

    def achieved_goal(self, state: MujocoState) -> FloatArray:
        """The place, [R, 2]."""
        return np.asarray(state.qpos[:, :2])

    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        """Return where the distance is within the goal's radius, [...]."""
        return self.distance(achieved_goal, desired_goal) <= self.goal_radius

    def begin(self, data: mujoco.MjData, start: FloatArray, goal: FloatArray) -> None:
        """Write start and goal of an episode, [2] each."""
        data.qpos[:2] = start
        data.userdata[:] = goal
        data.mocap_pos[0] = (*goal, 0.0)

    def _places(self, radius: float) -> GoalSpace:
        layout = self.layout
        return GoalSpace(
            low=layout.low,
            high=layout.high,
            threshold=(radius, radius),
            key="achieved_goal",
            reward=self.reward_type,
            reached_within="ball",
        )


def text_of(path: str) -> str:
    """The text of a temporary file of a package, which leaves it behind; deletes it."""
    file = Path(path)
    text = file.read_text(encoding="utf-8")
    file.unlink()
    return text


def away(rng: np.random.Generator, largest: float) -> FloatArray:
    """Draw a distance along x and y, uniformly up to the largest, [2]."""
    return np.array([rng.uniform(-largest, largest), rng.uniform(-largest, largest)])
