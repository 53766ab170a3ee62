"""A mass on a line that has to pass gates, which open and close by themselves.

A small world of the kind that Gürtler et al. 2021 (arXiv:2112.03100, section 5) made timed
sub-goals for: what matters is not only where the mass is, but when.
"""

from typing import ClassVar

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.world import WorldEnvironment, WorldState, WorldStep

DAMPING = 0.8
"""Share of the velocity that a step keeps."""
PUSH = 0.03
"""Velocity that a push of 1 adds; the fastest steady motion is 0.03 / (1 - 0.8) = 0.15 a step."""
MAX_SPEED = 0.15
START = -0.9
"""Place at which the mass starts, and to which a closed gate throws it back."""
GATES = (-0.3, 0.3)
"""Places of the gates; every start lies below them, every goal above."""
GOALS = (0.6, 0.9)
"""The range of goals."""
THRESHOLD = 0.05
"""Distance at which the goal is reached."""


@parameter_class
class GatesParameters:
    """Pass two gates while they are open; one that is closed throws the mass back to its start.

    Observed are place, velocity, and the sine and cosine of each gate's clock, which starts
    anywhere. Reaching the goal ends the episode.
    """

    level: ClassVar[str] = "gates"

    period: Positive[int] = 40
    """Steps from one opening of a gate to the next."""
    open_steps: Positive[int] = 6
    """Steps for which a gate stays open."""
    max_episode_steps: Positive[int] = 150
    """Length of an episode."""

    def __post_init__(self) -> None:
        require(
            self.open_steps < self.period,
            f"GatesParameters.open_steps must be less than period ({self.period}), or gates never "
            f"close, got {self.open_steps}",
        )

    def build(self, *, num_envs: int) -> WorldEnvironment:
        """A new environment with that many rows."""
        return WorldEnvironment(
            Gates(self), num_envs=num_envs, max_episode_steps=self.max_episode_steps
        )


class Gates:
    """The rules of the gates."""

    start_numbers, step_numbers = 1 + len(GATES), 0

    def __init__(self, parameters: GatesParameters) -> None:
        self._parameters = parameters
        high = np.array([1, MAX_SPEED, *[1] * (2 * len(GATES))], np.float32)
        place = spaces.Box(-1, 1, (1,), np.float32)
        self.spaces = EnvironmentSpaces(
            observation=spaces.Dict(
                {
                    "observation": spaces.Box(-high, high, dtype=np.float32),
                    "achieved_goal": place,
                    "desired_goal": place,
                }
            ),
            action=spaces.Box(-1, 1, (1,), np.float32),
        )

    def start(self, uniform: FloatArray) -> WorldState:
        """The mass at rest, with any goal and any time on the clocks."""
        low, high = GOALS
        rows = len(uniform)
        return {
            "position": np.full((rows, 1), START),
            "velocity": np.zeros((rows, 1)),
            "clock": np.floor(uniform[:, 1:] * self._parameters.period),
            "goal": low + (high - low) * uniform[:, :1],
        }

    def observe(self, state: WorldState) -> Observation:
        """Place, velocity and clocks [R, 6], place [R, 1], goal [R, 1]."""
        turn = 2 * np.pi * state["clock"] / self._parameters.period
        seen = (state["position"], state["velocity"], np.sin(turn), np.cos(turn))
        return {
            "observation": np.concatenate(seen, axis=1).astype(np.float32),
            "achieved_goal": state["position"].astype(np.float32),
            "desired_goal": state["goal"].astype(np.float32),
        }

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - no luck involved
        """Push, and throw back what meets a gate that is closed; then the clocks go on."""
        velocity = DAMPING * state["velocity"] + PUSH * np.asarray(action)
        velocity = np.clip(velocity, -MAX_SPEED, MAX_SPEED)
        position = state["position"] + velocity
        thrown = self._meets_closed(state, position)[:, None]
        at_wall = np.abs(position) >= 1
        state = {
            **state,
            "position": np.where(thrown, START, np.clip(position, -1, 1)),
            "velocity": np.where(thrown | at_wall, 0.0, velocity),
            "clock": (state["clock"] + 1) % self._parameters.period,
        }
        distance = np.abs(state["position"] - state["goal"])[:, 0]
        success = distance <= THRESHOLD
        return WorldStep(state, success - 1.0, success, {"is_success": success})

    def compute_reward(
        self,
        achieved_goal: Array,
        desired_goal: Array,
        info: object = None,  # noqa: ARG002 - part of the convention
    ) -> FloatArray:
        """Return 0 at the goal, else -1, float64 [...].

        Args:
            achieved_goal: [..., 1].
            desired_goal: [..., 1].
            info: Unused.
        """
        distance = np.abs(achieved_goal.astype(np.float64) - desired_goal)[..., 0]
        return np.where(distance <= THRESHOLD, 0.0, -1.0)

    def _meets_closed(self, state: WorldState, position: FloatArray) -> BoolArray:
        """Return where a mass that moves on to these places meets a closed gate, [R]."""
        gates = np.array(GATES)
        meets = (state["position"] < gates) != (position < gates)  # [R, gates]
        return np.asarray((meets & (state["clock"] >= self._parameters.open_steps)).any(axis=1))
