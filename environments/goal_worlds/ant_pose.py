"""An ant's pose: sub-goals that ask where it is, whether it stands on its feet, and how."""

from dataclasses import replace
from typing import ClassVar

import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.goals import GoalSpace
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.records import Array, FloatArray
from coach_rl.environments.goal_worlds.goal_task import GoalTask
from coach_rl.environments.mujoco import MujocoState

_TILT = 1.0
"""Threshold of the torso's own axis at a sub-goal: at most a quarter turn from upright."""
_STANCE = 2.0
"""Threshold of the stance at a sub-goal: the difference between the best and the worst."""


@parameter_class
class PosedAnt(GoalTask):
    """A world of an ant that shows its pose, if it is asked to."""

    posed_elements: ClassVar[int] = 2
    """Elements of the torso's place that a pose begins with."""

    shows_pose: bool = False
    """If True, observations have a `pose`, too: the torso's place and how far up its own axis
    points, 1 for an ant on its feet and -1 for one on its back. Sub-goals are poses then, so that
    an ant that has fallen over has reached none."""
    shows_stance: bool = False
    """If True, a pose ends with how the legs stand: 1 where all four point between the axes of the
    world, so that the ant is narrow along each, and -1 where they point along the axes. Sub-goals
    ask for it, too: in mazes the worse the stance is, the nearer to the place an ant must be."""

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.shows_pose or not self.shows_stance,
            f"{type(self).__name__}.shows_stance needs shows_pose=True",
        )

    def observation(self, state: MujocoState) -> dict[str, Array]:
        """Motion [R, O], achieved and desired goal [R, G]; if wanted, the pose [R, P + 1 or 2]."""
        seen = super().observation(state)
        if self.shows_pose:
            tilt = (state.qpos[:, 4:6] ** 2).sum(axis=1)  # of the quaternion's x and y
            place = state.qpos[:, : self.posed_elements]
            stance = [_stance(state.qpos[:, 3:7])] if self.shows_stance else []
            seen["pose"] = np.column_stack([place, 1 - 2 * tilt, *stance])
        return seen

    def poses(self, places: GoalSpace) -> GoalSpace:
        """Return sub-goals that ask for an ant on its feet at these places."""
        thresholds = (_TILT, _STANCE) if self.shows_stance else (_TILT,)
        return replace(
            places,
            low=(*places.low, *(-1.0 for _ in thresholds)),
            high=(*places.high, *(1.0 for _ in thresholds)),
            threshold=(*places.threshold, *thresholds),
            key="pose",
            elements=None,
        )


def _stance(orientations: FloatArray) -> FloatArray:
    """The cosine of four times the yaw of each unit quaternion [R, 4], [R]; legs are alike."""
    w, x, y, z = orientations.T
    yaw = np.arctan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
    stances: FloatArray = np.cos(4 * yaw)
    return stances
