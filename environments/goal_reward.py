"""The reward of the Gymnasium goal convention, shared by toys and by MuJoCo's goal worlds."""

from abc import ABC, abstractmethod
from typing import Literal

import numpy as np

from coach_rl.core.records import Array, BoolArray, FloatArray


class GoalReward(ABC):
    """Rewards of reaching goals: 0 where the goal is reached, else -1, or minus the distance."""

    reward_type: Literal["sparse", "dense"] = "sparse"

    @abstractmethod
    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        """Return where an achieved goal counts as the desired one, [...].

        Args:
            achieved_goal: [..., G].
            desired_goal: [..., G].
        """

    def distance(self, achieved_goal: Array, desired_goal: Array) -> FloatArray:
        """Distances between goals, Euclidean unless a world overrides it, [...].

        Args:
            achieved_goal: [..., G].
            desired_goal: [..., G].
        """
        difference = np.asarray(achieved_goal) - desired_goal
        return np.asarray(np.sqrt((difference**2).sum(axis=-1)))

    def compute_reward(
        self,
        achieved_goal: Array,
        desired_goal: Array,
        info: object = None,  # noqa: ARG002 - part of the convention
    ) -> FloatArray:
        """Rewards of being at one goal when another is desired, float64 [...].

        Args:
            achieved_goal: [..., G].
            desired_goal: [..., G].
            info: Unused.
        """
        success = self.reached(achieved_goal, desired_goal)
        return self._worth(achieved_goal, desired_goal, success)

    def _worth(self, achieved_goal: Array, desired_goal: Array, success: BoolArray) -> FloatArray:
        """Rewards by `reward_type`, float64 [...]."""
        if self.reward_type == "dense":
            return -self.distance(achieved_goal, desired_goal)
        return np.where(success, 0.0, -1.0)
