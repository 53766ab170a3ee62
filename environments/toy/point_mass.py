"""A point mass in the plane that is pushed to the origin, with a dense reward."""

from typing import ClassVar

import numpy as np
from gymnasium import spaces

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, Array, FloatArray, Observation
from coach_rl.environments.world import WorldEnvironment, WorldState, WorldStep, plain_spaces

STEP_SECONDS = 0.1
DAMPING = 0.9
"""Share of the velocity that a step keeps."""
ACCELERATION = 5.0
"""Acceleration by a push of 1; the fastest steady motion is 5 * 0.1 / (1 - 0.9) = 5 per second."""
MAX_SPEED = 5.0


@parameter_class
class PointMassParameters:
    """Start anywhere in the square at rest; reward is minus the distance to the origin."""

    level: ClassVar[str] = "point_mass"

    max_episode_steps: Positive[int] = 50
    """Length of an episode."""

    def build(self, *, num_envs: int) -> WorldEnvironment:
        return WorldEnvironment(
            PointMass(), num_envs=num_envs, max_episode_steps=self.max_episode_steps
        )


class PointMass:
    """The rules of the point mass."""

    start_numbers, step_numbers = 2, 0

    def __init__(self) -> None:
        self.spaces = plain_spaces(motion_space(), spaces.Box(-1, 1, (2,), np.float32))

    def start(self, uniform: FloatArray) -> WorldState:
        return {"position": 2 * uniform - 1, "velocity": np.zeros_like(uniform)}

    def observe(self, state: WorldState) -> Observation:
        return {"observation": observed_motion(state)}

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - deterministic
        state = pushed(state, np.asarray(action))
        reward = -np.sqrt((state["position"] ** 2).sum(axis=1))
        return WorldStep(state, reward, np.zeros(len(reward), np.bool_), {})


def motion_space() -> spaces.Box:
    """Position in [-1, 1], velocity within the speed limit."""
    high = np.array([1, 1, MAX_SPEED, MAX_SPEED], np.float32)
    return spaces.Box(-high, high, dtype=np.float32)


def observed_motion(state: WorldState) -> Array:
    """Position and velocity side by side, float32 [R, 4]."""
    return np.concatenate([state["position"], state["velocity"]], axis=1).astype(np.float32)


def pushed(state: WorldState, action: Array) -> WorldState:
    """One semi-implicit Euler step; the velocity is 0 at a wall.

    Args:
        state: `position` and `velocity`, each [R, 2].
        action: [R, 2] in [-1, 1].
    """
    velocity = DAMPING * state["velocity"] + ACCELERATION * STEP_SECONDS * action
    velocity = np.clip(velocity, -MAX_SPEED, MAX_SPEED)
    position = state["position"] + STEP_SECONDS * velocity
    at_wall = np.abs(position) >= 1
    rest = {
        "position": np.clip(position, -1, 1),
        "velocity": np.where(at_wall, 0.0, velocity),
    }
    return {**state, **rest}
