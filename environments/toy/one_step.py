"""One-step worlds, the smallest tasks there are: a contextual bandit with buttons or with dials."""

import numpy as np
from gymnasium import spaces

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, FloatArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.world import World, WorldEnvironment, WorldState, WorldStep


@parameter_class
class OneStepParameters:
    """Show a context, reward the action that matches it, end the episode."""

    size: Positive[int] = 4
    """Number of contexts (and actions), or of dimensions when continuous."""
    continuous: bool = False
    """False: a one-hot context, Discrete actions, reward 1 for the same index, else 0.
    True: a point in [-1, 1] per dimension, Box actions, reward 1 minus the mean squared error."""

    @property
    def level(self) -> str:
        """The task's name."""
        return "one_step_continuous" if self.continuous else "one_step"

    def build(self, *, num_envs: int) -> WorldEnvironment:
        """A new environment with that many rows."""
        world: World = Dial(self.size) if self.continuous else Buttons(self.size)
        return WorldEnvironment(world, num_envs=num_envs, max_episode_steps=None)


class Buttons:
    """Press the button whose lamp is on."""

    start_numbers, step_numbers = 1, 0

    def __init__(self, size: int) -> None:
        self._size = size
        self.spaces = EnvironmentSpaces(
            observation=spaces.Dict({"observation": spaces.Box(0, 1, (size,), np.float32)}),
            action=spaces.Discrete(size),
        )

    def start(self, uniform: FloatArray) -> WorldState:
        """A uniformly random context."""
        return {"context": (uniform[:, 0] * self._size).astype(np.int64)}

    def observe(self, state: WorldState) -> Observation:
        """One-hot context, [R, size]."""
        return {"observation": np.eye(self._size, dtype=np.float32)[state["context"]]}

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - no luck involved
        """Reward 1 for the matching action."""
        matches = np.asarray(np.asarray(action) == state["context"])
        return WorldStep(state, matches.astype(np.float64), np.ones(len(matches), np.bool_), {})


class Dial:
    """Turn every dial to where its needle points."""

    step_numbers = 0

    def __init__(self, size: int) -> None:
        self.start_numbers = size
        space = spaces.Box(-1, 1, (size,), np.float32)
        self.spaces = EnvironmentSpaces(
            observation=spaces.Dict({"observation": space}), action=space
        )

    def start(self, uniform: FloatArray) -> WorldState:
        """A uniformly random point."""
        return {"target": (2 * uniform - 1).astype(np.float32)}

    def observe(self, state: WorldState) -> Observation:
        """The target itself, [R, size]."""
        return {"observation": state["target"].copy()}

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - no luck involved
        """Reward 1 minus the mean squared difference."""
        difference = np.asarray(action, np.float64) - state["target"]
        reward = 1 - (difference**2).mean(axis=1)
        return WorldStep(state, reward, np.ones(len(reward), np.bool_), {})
