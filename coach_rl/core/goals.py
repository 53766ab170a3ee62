"""Goals: where they live in an observation, when they are reached, what reaching them is worth."""

import math
from dataclasses import dataclass
from typing import Literal

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import SpaceError, require
from coach_rl.core.records import Array, BoolArray, FloatArray, Observation

GOAL_KEY = "desired_goal"
"""The observation key under which a level's own goal stands."""


@dataclass(frozen=True, kw_only=True)
class GoalSpace:
    """A level's goals: the level is rewarded by them, the level above acts in them.

    Goals are compared in raw coordinates. The achieved goal is a selection of the elements of one
    observation key; `reached_within` says when it is reached.
    """

    low: tuple[float, ...]
    """Lower bound of each goal element; goals from above are clipped to the bounds."""
    high: tuple[float, ...]
    """Upper bound of each goal element."""
    threshold: tuple[float, ...]
    """Largest difference in each element at which the goal counts as reached."""
    key: str = "observation"
    """The observation key that holds the achieved goal."""
    elements: tuple[int, ...] | None = None
    """Which elements of the (flattened) key make the goal; None takes all of them."""
    relative: bool = False
    """The level above says how far to go, not where; goals are kept absolute either way."""
    reward: Literal["sparse", "dense"] = "sparse"
    """sparse: 0 where the goal is reached, else -1. dense: minus the Euclidean distance."""
    reached_within: Literal["elements", "ball"] = "elements"
    """elements: reached where every element is within its threshold. ball: where the differences,
    each divided by its threshold, have a Euclidean norm of 1 or less; equal thresholds are then the
    radius of a ball, as in the Fetch tasks."""

    def __post_init__(self) -> None:
        sizes = {len(self.low), len(self.high), len(self.threshold)}
        require(
            len(sizes) == 1 and len(self.low) > 0,
            f"GoalSpace needs as many low, high and threshold elements, got {len(self.low)}, "
            f"{len(self.high)} and {len(self.threshold)}",
        )
        require(
            self.elements is None or len(self.elements) == len(self.low),
            f"GoalSpace.elements names {len(self.elements or ())} elements, "
            f"its bounds have {len(self.low)}",
        )
        require(
            all(low < high for low, high in zip(self.low, self.high, strict=True)),
            f"GoalSpace.low must lie below high in every element, got {self.low} and {self.high}",
        )
        require(
            all(threshold >= 0 for threshold in self.threshold),
            f"GoalSpace.threshold must be 0 or more in every element, got {self.threshold}",
        )
        require(
            self.reached_within in ("elements", "ball"),
            f"GoalSpace.reached_within must be elements or ball, got {self.reached_within!r}",
        )
        require(
            self.reached_within == "elements" or all(threshold > 0 for threshold in self.threshold),
            "GoalSpace.threshold must be more than 0 in every element of a ball, "
            f"got {self.threshold}",
        )

    @property
    def space(self) -> spaces.Box:
        """Where the level above acts; differences when the goals are relative."""
        low, high = np.array(self.low, np.float32), np.array(self.high, np.float32)
        if self.relative:
            reach = high - low
            return spaces.Box(-reach, reach, dtype=np.float32)
        return spaces.Box(low, high, dtype=np.float32)

    @property
    def goal_space(self) -> spaces.Box:
        """Where the absolute goals lie."""
        return spaces.Box(
            np.array(self.low, np.float32), np.array(self.high, np.float32), dtype=np.float32
        )

    def check(self, observation_space: spaces.Dict) -> None:
        """Raise `SpaceError` unless the achieved goal can be read off such observations."""
        if self.key not in observation_space.spaces:
            raise SpaceError(
                f"the goal's key '{self.key}' is not observed; "
                f"observed: {sorted(observation_space.spaces)}"
            )
        size = int(np.prod(observation_space[self.key].shape or (1,)))
        if self.elements is None and size != len(self.low):
            raise SpaceError(
                f"the goal has {len(self.low)} elements, observation '{self.key}' has {size}; "
                "name them with GoalSpace.elements"
            )
        if self.elements is not None and not all(0 <= element < size for element in self.elements):
            raise SpaceError(
                f"GoalSpace.elements {self.elements} do not all lie in observation '{self.key}' "
                f"of {size} elements"
            )

    def achieved(self, observation: Observation) -> FloatArray:
        """The goal that each row's observation stands for, [R, G]."""
        values = observation[self.key]
        flat = values.reshape(len(values), math.prod(values.shape[1:]))  # -1 needs a row at least
        return flat if self.elements is None else flat[:, list(self.elements)]

    def target(self, action: Array, observation: Observation) -> FloatArray:
        """The absolute goals the level above asks for, clipped to the bounds, float32 [R, G]."""
        goal = self.achieved(observation) + action if self.relative else action
        return np.clip(goal, np.array(self.low), np.array(self.high)).astype(np.float32)

    def reached(self, goal: FloatArray, observation: Observation) -> BoolArray:
        """Where the goal is reached, [R]."""
        difference = np.abs(self.achieved(observation) - goal)
        threshold = np.array(self.threshold)
        if self.reached_within == "ball":
            return np.asarray(((difference / threshold) ** 2).sum(axis=1) <= 1.0)
        return np.asarray((difference <= threshold).all(axis=1))

    def distance(self, goal: FloatArray, observation: Observation) -> FloatArray:
        """Euclidean distance to the goal, float64 [R]."""
        difference = self.achieved(observation).astype(np.float64) - goal
        return np.asarray(np.sqrt((difference**2).sum(axis=1)))

    def goal_reward(self, goal: FloatArray, observation: Observation) -> FloatArray:
        """What a state is worth under a goal, float64 [R]."""
        if self.reward == "dense":
            return -self.distance(goal, observation)
        return np.where(self.reached(goal, observation), 0.0, -1.0)
