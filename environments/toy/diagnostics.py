"""Toy worlds that each test one ability: matching a context, exploring, valuing time limits."""

from typing import Annotated, ClassVar, Literal

import numpy as np
from annotated_types import Ge, Interval
from gymnasium import spaces

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, Array, FloatArray, Observation
from coach_rl.core.spaces import Space
from coach_rl.environments.world import World, WorldEnvironment, WorldState, WorldStep, plain_spaces


@parameter_class
class OneStepParameters:
    """One-step episodes, the smallest tasks: the action that matches the context is rewarded."""

    size: Positive[int] = 4
    """Number of contexts (and actions), or of dimensions when continuous."""
    continuous: bool = False
    """False: a one-hot context, Discrete actions, reward 1 for the same index, else 0.
    True: a point in [-1, 1] per dimension, Box actions, reward 1 minus the mean squared error."""

    @property
    def level(self) -> str:
        return "one_step_continuous" if self.continuous else "one_step"

    def build(self, *, num_envs: int) -> WorldEnvironment:
        world: World = Dial(self.size) if self.continuous else Buttons(self.size)
        return WorldEnvironment(world, num_envs=num_envs, max_episode_steps=None)


class Buttons:
    """A contextual bandit: the rewarded action is the index of the context."""

    start_numbers, step_numbers = 1, 0

    def __init__(self, size: int) -> None:
        self._size = size
        self.spaces = plain_spaces(spaces.Box(0, 1, (size,), np.float32), spaces.Discrete(size))

    def start(self, uniform: FloatArray) -> WorldState:
        return {"context": (uniform[:, 0] * self._size).astype(np.int64)}

    def observe(self, state: WorldState) -> Observation:
        """One-hot context, [R, size]."""
        return {"observation": np.eye(self._size, dtype=np.float32)[state["context"]]}

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - deterministic
        matches = np.asarray(np.asarray(action) == state["context"])
        return WorldStep(state, matches.astype(np.float64), np.ones(len(matches), np.bool_), {})


class Dial:
    """A continuous contextual bandit: the best action is the context itself."""

    step_numbers = 0

    def __init__(self, size: int) -> None:
        self.start_numbers = size
        space = spaces.Box(-1, 1, (size,), np.float32)
        self.spaces = plain_spaces(space, space)

    def start(self, uniform: FloatArray) -> WorldState:
        return {"target": (2 * uniform - 1).astype(np.float32)}

    def observe(self, state: WorldState) -> Observation:
        return {"observation": state["target"].copy()}

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - deterministic
        difference = np.asarray(action, np.float64) - state["target"]
        reward = 1 - (difference**2).mean(axis=1)
        return WorldStep(state, reward, np.ones(len(reward), np.bool_), {})


@parameter_class
class ChainParameters:
    """Walk left (0) or right (1) along a chain of states, with a small reward near the start.

    After Osband et al. 2016, "Deep Exploration via Bootstrapped DQN", section 5 and figure 5: the
    walk begins at the second state, the reward is 0.001 in the first state and 1 in the last, and
    an episode takes `length + 9` steps.
    """

    level: ClassVar[str] = "chain"

    length: Annotated[int, Ge(2)] = 10
    """Number of states, 2 or more; for random walks the search is exponential in it."""
    slip: Annotated[float, Interval(ge=0, lt=1)] = 0.0
    """Probability that a step goes the other way, in [0, 1)."""
    observation: Literal["one_hot", "thermometer", "index"] = "thermometer"
    """thermometer: ones up to the state (generalises best); one_hot; index: a Discrete space."""
    max_episode_steps: Positive[int] | None = None
    """Length of an episode; None takes the paper's `length + 9`."""

    def build(self, *, num_envs: int) -> WorldEnvironment:
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
        self.spaces = plain_spaces(shown, spaces.Discrete(2))

    def start(self, uniform: FloatArray) -> WorldState:
        return {"position": np.ones(len(uniform), np.int64)}

    def observe(self, state: WorldState) -> Observation:
        """[R, length], or [R] indices."""
        return {"observation": self._table[state["position"]]}

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:
        move = 2 * np.asarray(action) - 1
        if self.step_numbers:
            move = np.where(uniform[:, 0] < self._slip, -move, move)
        position = np.clip(state["position"] + move, 0, self._last)
        reward = np.where(position == 0, 0.001, np.where(position == self._last, 1.0, 0.0))
        return WorldStep({"position": position}, reward, np.zeros(len(position), np.bool_), {})


@parameter_class
class SteadyPayParameters:
    """Reward 1 at every step and no end but the time limit: the value of a truncated episode.

    Neither observation nor action matters, so with discount gamma every state is worth
    1 / (1 - gamma), if the learner bootstraps at the time limit. One that treats the limit as an
    end learns less.
    """

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
        return WorldEnvironment(
            SteadyPay(self), num_envs=num_envs, max_episode_steps=self.max_episode_steps
        )


class SteadyPay:
    """The rules of constant reward; the observation is a new random number at every step."""

    start_numbers, step_numbers = 1, 1

    def __init__(self, parameters: SteadyPayParameters) -> None:
        self.spaces = plain_spaces(
            spaces.Box(-1, 1, (1,), np.float32),
            spaces.Box(parameters.low, parameters.high, (1,), np.float32),
        )

    def start(self, uniform: FloatArray) -> WorldState:
        return {"number": (2 * uniform - 1).astype(np.float32)}

    def observe(self, state: WorldState) -> Observation:
        return {"observation": state["number"].copy()}

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - without effect
        rows = len(uniform)
        return WorldStep(self.start(uniform), np.ones(rows), np.zeros(rows, np.bool_), {})
