"""Reward 1 at every step and no end but the time limit: what a cut-off episode must be worth.

Nothing the agent does or sees matters, so with discount gamma every state is worth 1 / (1 - gamma),
if the learner continues behind the time limit. One that takes the limit for an end learns less.
"""

from typing import ClassVar

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, FloatArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.world import WorldEnvironment, WorldState, WorldStep


@parameter_class
class SteadyPayParameters:
    """Be paid 1 at every step, until the time is up."""

    level: ClassVar[str] = "steady_pay"

    max_episode_steps: Positive[int] = 10
    """Length of an episode, which is always truncated, never terminated."""
    low: float = -1.0
    """Lower bound of the one action."""
    high: float = 3.0
    """Upper bound of the one action; by default 0 is not the middle."""

    def __post_init__(self) -> None:
        require(
            -np.inf < self.low < self.high < np.inf,
            "SteadyPayParameters.low must lie below high, and both be finite, "
            f"got {self.low} and {self.high}",
        )

    def build(self, *, num_envs: int) -> WorldEnvironment:
        """A new environment with that many rows."""
        return WorldEnvironment(
            SteadyPay(self), num_envs=num_envs, max_episode_steps=self.max_episode_steps
        )


class SteadyPay:
    """The rules of the steady pay; what is seen is a new random number at every step."""

    start_numbers, step_numbers = 1, 1

    def __init__(self, parameters: SteadyPayParameters) -> None:
        self.spaces = EnvironmentSpaces(
            observation=spaces.Dict({"observation": spaces.Box(-1, 1, (1,), np.float32)}),
            action=spaces.Box(parameters.low, parameters.high, (1,), np.float32),
        )

    def start(self, uniform: FloatArray) -> WorldState:
        """A uniformly random number."""
        return {"number": (2 * uniform - 1).astype(np.float32)}

    def observe(self, state: WorldState) -> Observation:
        """The number, [R, 1]."""
        return {"observation": state["number"].copy()}

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - nothing matters
        """Another number, reward 1."""
        rows = len(uniform)
        return WorldStep(self.start(uniform), np.ones(rows), np.zeros(rows, np.bool_), {})
