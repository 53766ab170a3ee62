"""Rows of single Gymnasium environments: stepped, and saved by what they went through."""

import os
import traceback
from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from coach_rl.core.errors import CheckpointError, ConfigurationError, EnvironmentFault, SpaceError
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.core.state import State
from coach_rl.environments.gymnasium.layout import Info, Layout, Leaves, flat_info, layout_of
from coach_rl.environments.gymnasium.recipe import Env, Recipe

T = TypeVar("T")


class RowsAnswer(NamedTuple):
    """The answers of rows to a step, in the order asked; all arrays are new."""

    observation: Observation
    """[R, ...] each, the true last one where the episode ended."""
    first_observation: Observation
    """[R, ...] each, of the next episode where one ended; the same dict when none did."""
    reward: FloatArray
    """[R]."""
    terminated: BoolArray
    """[R]."""
    truncated: BoolArray
    """[R]."""
    infos: list[Info]
    """R dicts."""


class LocalRows:
    """Rows stepped one after the other in this process.

    Args:
        recipe: How each row's environment is made.
        numbers: The rows' numbers, for messages.
    """

    def __init__(self, recipe: Recipe, numbers: Sequence[int]) -> None:
        self._level = recipe.level
        self._numbers = list(numbers)
        self._rows: list[Row] = []
        try:
            for _ in numbers:
                env = recipe.make()
                self._rows.append(Row(env, self._layout_like_first(env)))
        except BaseException:
            self.close()
            raise

    @property
    def layout(self) -> Layout:
        """Mapping of the environments' values to flat arrays."""
        return self._layout

    def reset(self, seeds: Sequence[int | None]) -> tuple[Observation, list[Info]]:
        """Start every row anew; its observations [N, ...] and infos."""
        observation = self._layout.buffers(len(self._rows))
        infos = []
        for index, seed in enumerate(seeds):
            leaves, info = self._guarded(index, "reset", self._rows[index].reset, seed)
            _write(observation, index, leaves)
            infos.append(info)
        return observation, infos

    def step(self, rows: IntArray, action: Action) -> RowsAnswer:
        """Step some rows and reset those whose episode ended.

        Args:
            rows: [R].
            action: [R, ...].
        """
        observation = self._layout.buffers(len(rows))
        first: Observation | None = None
        reward = np.zeros(len(rows), np.float64)
        terminated = np.zeros(len(rows), np.bool_)
        truncated = np.zeros(len(rows), np.bool_)
        infos = []
        restarts: list[tuple[int, Leaves]] = []
        parts = zip(*self._layout.action_arrays(action), strict=True)
        for place, (index, leaves) in enumerate(zip(rows.tolist(), parts, strict=True)):
            row = self._rows[index]
            stepped: Stepped = self._guarded(index, "step", row.step, leaves)
            _write(observation, place, stepped.leaves)
            reward[place] = stepped.reward
            infos.append(stepped.info)
            if stepped.terminated or stepped.truncated:
                terminated[place], truncated[place] = stepped.terminated, stepped.truncated
                restarts.append((place, self._guarded(index, "reset", row.reset)[0]))
        if restarts:
            first = {key: values.copy() for key, values in observation.items()}
            for place, again in restarts:
                _write(first, place, again)
        return RowsAnswer(observation, first or observation, reward, terminated, truncated, infos)

    def snapshot(self) -> list[State]:
        """Each row's state."""
        return [row.snapshot() for row in self._rows]

    def restore(self, states: Sequence[State]) -> None:
        """Put each row where its state says."""
        for index, state in enumerate(states):
            self._guarded(index, "replay", self._rows[index].restore, state)

    def render(self, row: int) -> Array:
        """A frame of one row, uint8 [height, width, 3]."""
        env = self._rows[row].env
        if env.render_mode != "rgb_array":
            raise ConfigurationError(
                f"'{self._level}' was made with render_mode {env.render_mode!r}; "
                "ask for pictures with kwargs={'render_mode': 'rgb_array'}"
            )
        for sdl in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER"):  # else pygame looks for a display,
            os.environ.setdefault(sdl, "dummy")  # and complains where there is none
        return np.asarray(self._guarded(row, "render", env.render))

    def close(self) -> None:
        """Close every environment once."""
        rows, self._rows = self._rows, []
        for row in rows:
            row.env.close()

    def _layout_like_first(self, env: object) -> Layout:
        """The layout of this environment, which must be that of the first."""
        layout = layout_of(
            getattr(env, "observation_space", None),
            getattr(env, "action_space", None),
            level=self._level,
        )
        if not self._rows:
            self._layout = layout
        require_one_layout(layout, self._layout, level=self._level)
        return self._layout

    def _guarded(self, index: int, verb: str, call: Callable[..., T], *arguments: object) -> T:
        """The call's result; any error becomes a fault that names the row."""
        try:
            return call(*arguments)
        except Exception as error:
            name = f"row {self._numbers[index]} of '{self._level}'"
            if isinstance(error, CheckpointError):
                raise CheckpointError(f"{name}: {error}") from error
            raise fault(name, verb, error) from error


class Stepped(NamedTuple):
    """The result of one step of one row."""

    leaves: Leaves
    reward: float
    terminated: bool
    truncated: bool
    info: Info


class Row:
    """A Gymnasium environment and the history of its present episode.

    An arbitrary environment cannot be written down, but its episode can be lived again: from
    the seed or the state of its random generator at the start, with the actions since.
    Restoring costs a reset and the steps of one unfinished episode; remembering costs one
    action per step, forgotten when the episode ends. What an environment or a wrapper carries
    over from one episode to the next, other than its `np_random`, is not restored; `restore`
    checks that it was led to the same place, and says so if not.

    Args:
        env: The environment; owned from now on.
        layout: How its values lie in flat arrays.
    """

    def __init__(self, env: Env, layout: Layout) -> None:
        self.env = env
        self._layout = layout
        self._seed: int | None = None
        """The last seed given; None when there never was one."""
        self._start: State | None = None
        """The generator before the episode's unseeded reset; None when it began with the seed."""
        self._actions: list[tuple[object, ...]] = []
        self._rewards = 0.0
        self._last: Leaves = []

    def reset(self, seed: int | None = None) -> tuple[Leaves, Info]:
        """Begin an episode; with a seed, begin the random stream anew as well."""
        if seed is not None:
            self._seed, self._start = seed, None
        else:
            self._start = generator_of(self.env)
        answer: Any = self.env.reset(seed=seed)
        if not isinstance(answer, tuple) or len(answer) != 2:
            raise EnvironmentFault(f"it gave no pair (observation, info); {_NEW_INTERFACE}")
        observation, info = answer
        self._actions, self._rewards = [], 0.0
        self._last = self._layout.leaves(observation)
        self._layout.check_kinds(self._last)
        return self._last, flat_info(info) if info else {}

    def step(self, leaves: tuple[object, ...]) -> Stepped:
        """One step with the action that has these flat parts; the caller resets after an end."""
        self._actions.append(leaves)
        observation, given, terminated, truncated, info = self.env.step(
            self._layout.nested_action(leaves)
        )
        reward = given if type(given) is float else _number(given)
        self._rewards += reward
        self._last = self._layout.leaves(observation)
        return Stepped(
            self._last, reward, bool(terminated), bool(truncated), flat_info(info) if info else {}
        )

    def snapshot(self) -> State:
        """Return a snapshot for `restore` that shares no memory with the row."""
        parts = [np.stack(part) for part in zip(*self._actions, strict=True)]
        return {
            "seed": self._seed,
            "start": deepcopy(self._start),
            "steps": len(self._actions),
            "actions": {str(index): part for index, part in enumerate(parts)},
            "rewards": self._rewards,
            "observation": {str(index): np.array(leaf) for index, leaf in enumerate(self._last)},
            "generator": generator_of(self.env),
        }

    def restore(self, state: State) -> None:
        """Live the saved episode again.

        Raises:
            CheckpointError: The environment did not arrive where it was saved.
        """
        seed, start = state["seed"], state["start"]
        if seed is not None:
            self.reset(seed)
        if start is not None:
            load_generator_state(self.env.unwrapped.np_random, start)
            self.reset()
        elif seed is None:
            self.reset()
        parts = [state["actions"][str(index)] for index in range(len(state["actions"]))]
        for step in range(state["steps"]):
            self.step(tuple(part[step] for part in parts))
        self._check_arrival(state)

    def _check_arrival(self, state: State) -> None:
        saved = [state["observation"][str(index)] for index in range(len(state["observation"]))]
        pairs = zip(saved, self._last, strict=True)
        same_observation = all(_equal(there, np.asarray(here)) for there, here in pairs)
        same_rewards = _equal(np.float64(self._rewards), np.float64(state["rewards"]))
        same_generator = _same(state["generator"], generator_of(self.env))
        if not (same_observation and same_rewards and same_generator):
            raise CheckpointError(
                f"the environment is not reproducible: {state['steps']} replayed steps led to "
                "another state than the saved one; it (or a wrapper) uses randomness besides "
                "self.np_random, or carries something over from earlier episodes"
            )


def fault(name: str, verb: str, error: Exception) -> EnvironmentFault:
    """Build the error for an environment whose own code failed or broke its contract.

    Args:
        name: The environment.
        verb: Which of its methods was called.
        error: What was raised.
    """
    if isinstance(error, EnvironmentFault):
        return EnvironmentFault(f"{name} failed in {verb}: {error}")
    text = str(error)
    if isinstance(error, ValueError) and "expected 5, got" in text:
        count = text.partition("got ")[2].partition(")")[0]
        text = f"step gave {count} values, not 5; {_NEW_INTERFACE}"
    elif isinstance(error, TypeError) and verb == "reset" and "'seed'" in text:
        text = f"reset takes no seed; {_NEW_INTERFACE}"
    else:
        place = traceback.extract_tb(error.__traceback__)[-1]
        text = f"{type(error).__name__}: {text} ({Path(place.filename).name}, line {place.lineno})"
    return EnvironmentFault(f"{name} failed in {verb}: {text}")


def generator_of(env: Env) -> State | None:
    """The state of the environment's random generator; None when it has none of numpy's kind."""
    rng = getattr(env.unwrapped, "np_random", None)
    return generator_state(rng) if isinstance(rng, np.random.Generator) else None


def require_one_layout(layout: Layout, first: Layout, *, level: str) -> None:
    """Raise `SpaceError` unless a row's layout is that of the first."""
    if layout != first:
        raise SpaceError(
            f"two rows of '{level}' have different spaces: {layout.spaces} and {first.spaces}; "
            "every row must have the same"
        )


_NEW_INTERFACE = (
    "this is Gym's old interface, Gymnasium has reset(*, seed=None, options=None) -> (observation, "
    "info) and step(action) -> (observation, reward, terminated, truncated, info)"
)


def _number(reward: Any) -> float:
    if not hasattr(reward, "__float__") or np.ndim(reward):
        raise EnvironmentFault(f"the reward must be a number, got {reward!r}")
    return float(reward)


def _write(observation: Observation, place: int, leaves: Leaves) -> None:
    for values, leaf in zip(observation.values(), leaves, strict=True):
        values[place] = leaf


def _same(left: object, right: object) -> bool:
    """Return whether two generator states agree; some kinds hold arrays."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    return bool(np.array_equal(np.asarray(left), np.asarray(right)))


def _equal(left: Array | np.generic, right: Array | np.generic) -> bool:
    floating = np.issubdtype(left.dtype, np.inexact)
    return np.array_equal(left, right, equal_nan=floating)
