"""N rows of a world of pure functions, with seeds, time limits, restarts and saved states."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np
from gymnasium import spaces

from coach_rl.core.records import (
    Action,
    Array,
    BoolArray,
    Directive,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
)
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.environments.inbox import Inbox, row_seeds

WorldState = dict[str, Array]
"""Everything that changes in a world: arrays by name, each [R, ...]."""


def plain_spaces(observation: Space, action: Space) -> EnvironmentSpaces:
    """The spaces of a world that shows one array, under the key `observation`."""
    return EnvironmentSpaces(observation=spaces.Dict({"observation": observation}), action=action)


class WorldStep(NamedTuple):
    """The result of one step of some rows."""

    state: WorldState
    reward: FloatArray
    """[R]."""
    terminated: BoolArray
    """[R]."""
    info: dict[str, Array]
    """[R, ...] each."""


class World(Protocol):
    """The rules of a world: pure functions over rows, without state.

    state = world.start(uniform)                    # uniform: [R, world.start_numbers] in [0, 1)
    observation = world.observe(state)
    state, reward, terminated, info = world.step(state, action, uniform)    # [R, step_numbers]
    """

    @property
    def spaces(self) -> EnvironmentSpaces: ...

    @property
    def start_numbers(self) -> int:
        """Number of uniform numbers that a start needs."""
        ...

    @property
    def step_numbers(self) -> int:
        """Number of uniform numbers that a step needs."""
        ...

    def start(self, uniform: FloatArray) -> WorldState:
        """States at the beginning of an episode, [R, ...] each."""
        ...

    def observe(self, state: WorldState) -> Observation:
        """Observations of the states: new arrays, [R, ...] each."""
        ...

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:
        """One step of these rows; must not write to `state`."""
        ...


class WorldEnvironment(Saved):
    """N rows of a world; an `Environment`.

    Every row has its own random stream, so that its episodes don't depend on the other rows.
    Without a first seed the streams start from the operating system's entropy.

    Args:
        world: The rules.
        num_envs: N.
        max_episode_steps: Episodes are truncated after this many steps; None: the world ends them.
    """

    SAVED = (
        "_elapsed",  # first, for it gives the number of rows
        "_inbox",
        SavedAttribute("_state", key="world"),
        SavedAttribute("_streams_by_row", key="streams"),
    )

    def __init__(self, world: World, *, num_envs: int, max_episode_steps: int | None) -> None:
        self.world = world
        self._num_envs = num_envs
        self._max_episode_steps = np.inf if max_episode_steps is None else max_episode_steps
        self._inbox = Inbox(world.spaces.action, num_envs=num_envs)
        self._streams = [np.random.default_rng() for _ in range(num_envs)]
        self._elapsed = np.zeros(num_envs, np.int64)
        self._state = world.start(np.zeros((num_envs, world.start_numbers)))
        """[N, ...] each."""

    @property
    def num_envs(self) -> int:
        return self._num_envs

    @property
    def spaces(self) -> EnvironmentSpaces:
        return self.world.spaces

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        seeds = row_seeds(seed, self._num_envs)
        if seeds is not None:
            self._streams = [np.random.default_rng(row_seed) for row_seed in seeds]
        self._state = self.world.start(
            self._uniform(np.arange(self._num_envs), self.world.start_numbers)
        )
        self._elapsed[:] = 0
        self._inbox.start()
        return EnvResponse.reset(self.world.observe(self._state), num_envs=self._num_envs)

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        self._inbox.put(directive, rows)

    def recv(self) -> EnvResponse:
        rows, action = self._inbox.take()
        state = {name: values[rows] for name, values in self._state.items()}
        step = self.world.step(state, action, self._uniform(rows, self.world.step_numbers))
        self._elapsed[rows] += 1
        truncated = self._elapsed[rows] >= self._max_episode_steps
        observation = self.world.observe(step.state)
        for name, values in self._state.items():
            values[rows] = step.state[name]
        return EnvResponse.step(
            rows,
            observation=observation,
            first_observation=self._restarted(rows, step.terminated | truncated, observation),
            reward=step.reward,
            terminated=step.terminated,
            truncated=truncated,
            info=step.info,
        )

    @property
    def _streams_by_row(self) -> dict[str, np.random.Generator]:
        return {str(row): stream for row, stream in enumerate(self._streams)}

    def close(self) -> None:
        """Nothing to release."""

    def _restarted(self, rows: IntArray, ended: BoolArray, observation: Observation) -> Observation:
        """Next observations of all rows, [R, ...] each, after a restart of those that ended."""
        if not ended.any():
            return observation
        again = rows[ended]
        start = self.world.start(self._uniform(again, self.world.start_numbers))
        for name, values in self._state.items():
            values[again] = start[name]
        self._elapsed[again] = 0
        first = {key: values.copy() for key, values in observation.items()}
        for key, values in self.world.observe(start).items():
            first[key][ended] = values
        return first

    def _uniform(self, rows: IntArray, numbers: int) -> FloatArray:
        """[R, numbers] from the rows' own streams."""
        uniform = np.zeros((len(rows), numbers))
        if numbers:
            for position, row in enumerate(rows.tolist()):
                uniform[position] = self._streams[row].random(numbers)
        return uniform
