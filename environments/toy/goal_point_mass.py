"""The point mass with a goal of its own: the smallest task for hindsight and hierarchies.

Follows the Gymnasium goal convention: `observation`, `achieved_goal`, `desired_goal`, a
`compute_reward` over any number of rows, and `is_success` in the info.
"""

from typing import ClassVar, Literal

import numpy as np
from gymnasium import spaces

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, Array, FloatArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.toy.point_mass import motion_space, observed_motion, pushed
from coach_rl.environments.world import WorldEnvironment, WorldState, WorldStep


@parameter_class
class GoalPointMassParameters:
    """Start anywhere in the square at rest; reach another point of it."""

    level: ClassVar[str] = "goal_point_mass"

    threshold: Positive[float] = 0.1
    """Distance at which the goal is reached; the square's side is 2."""
    reward: Literal["sparse", "dense"] = "sparse"
    """sparse: 0 where the goal is reached, else -1. dense: minus the distance."""
    terminate: bool = False
    """If True, reaching the goal ends the episode; Gymnasium-Robotics continues by default."""
    max_episode_steps: Positive[int] = 50
    """Length of an episode."""

    def build(self, *, num_envs: int) -> WorldEnvironment:
        """A new environment with that many rows."""
        return WorldEnvironment(
            GoalPointMass(self), num_envs=num_envs, max_episode_steps=self.max_episode_steps
        )


class GoalPointMass:
    """The rules of the point mass with a goal."""

    start_numbers, step_numbers = 4, 0

    def __init__(self, parameters: GoalPointMassParameters) -> None:
        self._parameters = parameters
        place = spaces.Box(-1, 1, (2,), np.float32)
        self.spaces = EnvironmentSpaces(
            observation=spaces.Dict(
                {"observation": motion_space(), "achieved_goal": place, "desired_goal": place}
            ),
            action=spaces.Box(-1, 1, (2,), np.float32),
        )

    def start(self, uniform: FloatArray) -> WorldState:
        """Place and goal anywhere, at rest."""
        return {
            "position": 2 * uniform[:, :2] - 1,
            "velocity": np.zeros((len(uniform), 2)),
            "goal": 2 * uniform[:, 2:] - 1,
        }

    def observe(self, state: WorldState) -> Observation:
        """Motion [R, 4], place [R, 2], goal [R, 2]."""
        return {
            "observation": observed_motion(state),
            "achieved_goal": state["position"].astype(np.float32),
            "desired_goal": state["goal"].astype(np.float32),
        }

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - no luck involved
        """Push, and judge by the goal."""
        state = pushed(state, np.asarray(action))
        seen = self.observe(state)
        reward = self.compute_reward(seen["achieved_goal"], seen["desired_goal"])
        success = (
            _distance(seen["achieved_goal"], seen["desired_goal"]) <= self._parameters.threshold
        )
        return WorldStep(
            state, reward, success & self._parameters.terminate, {"is_success": success}
        )

    def compute_reward(
        self,
        achieved_goal: Array,
        desired_goal: Array,
        info: object = None,  # noqa: ARG002 - part of the convention
    ) -> FloatArray:
        """Return the reward of being at one place when another is desired, float64 [...].

        Args:
            achieved_goal: [..., 2].
            desired_goal: [..., 2].
            info: Unused.
        """
        distance = _distance(achieved_goal, desired_goal)
        if self._parameters.reward == "dense":
            return -distance
        return np.where(distance <= self._parameters.threshold, 0.0, -1.0)


def _distance(here: Array, there: Array) -> FloatArray:
    difference = here.astype(np.float64) - there
    return np.asarray(np.sqrt((difference**2).sum(axis=-1)))
