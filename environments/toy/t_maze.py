"""A T-maze: a cue at the start shows where to turn at the end of a corridor."""

import numpy as np
from gymnasium import spaces

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, Array, FloatArray, Observation
from coach_rl.environments.world import WorldEnvironment, WorldState, WorldStep, plain_spaces

NORTH, EAST, SOUTH, WEST = range(4)
"""The actions."""
CUE_NORTH, CUE_SOUTH, CORRIDOR, JUNCTION = range(4)
_SHOWN = np.array([[0, 1, 1], [1, 1, 0], [1, 0, 1], [0, 1, 0]], np.float32)
"""Bakker's observations of these four."""


@parameter_class
class TMazeParameters:
    """Walk east through a corridor and turn at its end to the side that the first step showed.

    After Bakker 2001, "Reinforcement Learning with Long Short-Term Memory": his four
    actions, three bits of observation and rewards 4 for the right turn and -0.1 for the wrong one
    or for standing still. Two differences make memory the only difficulty: a step back costs 0.1
    too, so that the way east needs no exploration, and the cue is shown at the first step alone,
    so that it can't be read again at the start. Policies without memory succeed in half of the
    episodes at most.
    """

    length: Positive[int] = 10
    """Steps from the start to the junction, 1 or more."""
    max_episode_steps: Positive[int] | None = None
    """Length of an episode without a turn; None takes `2 * length + 10`."""

    @property
    def level(self) -> str:
        return f"t_maze_{self.length}"

    def build(self, *, num_envs: int) -> WorldEnvironment:
        limit = self.max_episode_steps or 2 * self.length + 10
        return WorldEnvironment(TMaze(self.length), num_envs=num_envs, max_episode_steps=limit)


class TMaze:
    """The rules of the T-maze."""

    start_numbers, step_numbers = 1, 0

    def __init__(self, length: int) -> None:
        self._length = length
        self.spaces = plain_spaces(spaces.Box(0, 1, (3,), np.float32), spaces.Discrete(4))

    def start(self, uniform: FloatArray) -> WorldState:
        rows = len(uniform)
        return {
            "position": np.zeros(rows, np.int64),
            "south": uniform[:, 0] >= 0.5,
            "first": np.ones(rows, np.bool_),
        }

    def observe(self, state: WorldState) -> Observation:
        """Three bits, [R, 3]: 011 or 110 at the first step, then 101, at the junction 010."""
        later = np.where(state["position"] == self._length, JUNCTION, CORRIDOR)
        cue = np.where(state["south"], CUE_SOUTH, CUE_NORTH)
        return {"observation": _SHOWN[np.where(state["first"], cue, later)]}

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - deterministic
        action = np.asarray(action)
        before: Array = state["position"]
        turned = (before == self._length) & ((action == NORTH) | (action == SOUTH))
        success = turned & ((action == SOUTH) == state["south"])
        move = (action == EAST).astype(np.int64) - (action == WEST)
        position = np.clip(before + move, 0, self._length)
        reward = np.where(success, 4.0, np.where(position > before, 0.0, -0.1))
        after = {"position": position, "south": state["south"], "first": np.zeros_like(turned)}
        return WorldStep(after, reward, turned, {"is_success": success})
