"""The exploration chain: a long walk to the large reward, a small temptation near the start.

After Osband et al. 2016, "Deep Exploration via Bootstrapped DQN", section 5 and figure 5: the walk
begins at the second state, reward is 0.001 in the first state and 1 in the last, and an episode
takes `length + 9` steps.
"""

from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Interval
from gymnasium import spaces

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, Array, FloatArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.environments.world import WorldEnvironment, WorldState, WorldStep


@parameter_class
class ChainParameters:
    """Walk left (0) or right (1) along a chain of states."""

    level: ClassVar[str] = "chain"

    length: Annotated[int, Ge(2)] = 10
    """Number of states, 2 or more; the search gets exponentially harder for random walks."""
    slip: Annotated[float, Interval(ge=0, lt=1)] = 0.0
    """Probability that a step goes the other way, in [0, 1)."""
    observation: Literal["one_hot", "thermometer", "index"] = "thermometer"
    """thermometer: ones up to the state (generalises best); one_hot; index: a Discrete space."""
    max_episode_steps: Positive[int] | None = None
    """Length of an episode; None takes the paper's `length + 9`."""

    def build(self, *, num_envs: int) -> WorldEnvironment:
        """A new environment with that many rows."""
        limit = self.max_episode_steps or self.length + 9
        return WorldEnvironment(Chain(self), num_envs=num_envs, max_episode_steps=limit)


class Chain:
    """The rules of the chain."""

    start_numbers = 0

    def __init__(self, parameters: ChainParameters) -> None:
        length = parameters.length
        self._slip = parameters.slip
        self._last = length - 1
        self.step_numbers = 1 if parameters.slip else 0
        tables: dict[str, Array] = {
            "one_hot": np.eye(length, dtype=np.float32),
            "thermometer": np.tri(length, dtype=np.float32),
            "index": np.arange(length),
        }
        self._table = tables[parameters.observation]
        shown: Space = spaces.Box(0, 1, (length,), np.float32)
        if parameters.observation == "index":
            shown = spaces.Discrete(length)
        self.spaces = EnvironmentSpaces(
            observation=spaces.Dict({"observation": shown}), action=spaces.Discrete(2)
        )

    def start(self, uniform: FloatArray) -> WorldState:
        """The second state."""
        return {"position": np.ones(len(uniform), np.int64)}

    def observe(self, state: WorldState) -> Observation:
        """[R, length], or [R] indices."""
        return {"observation": self._table[state["position"]]}

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:
        """Move, and collect what lies in the new state."""
        move = 2 * np.asarray(action) - 1
        if self.step_numbers:
            move = np.where(uniform[:, 0] < self._slip, -move, move)
        position = np.clip(state["position"] + move, 0, self._last)
        reward = np.where(position == 0, 0.001, np.where(position == self._last, 1.0, 0.0))
        return WorldStep({"position": position}, reward, np.zeros(len(position), np.bool_), {})
