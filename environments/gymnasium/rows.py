"""Rows of single Gymnasium environments: stepped, and saved by their state or their actions."""

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from ctypes import c_int
from functools import partial
from typing import Any, NamedTuple, Self, TypeVar

import numpy as np

from coach_rl.core.errors import CheckpointError, ConfigurationError, EnvironmentFault, SpaceError
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.core.shown_text import shown_level, shown_value
from coach_rl.core.spaces import Space
from coach_rl.core.state import State
from coach_rl.environments.faults import (
    OldInterface,
    RowFailure,
    Unstable,
    close_failure_of,
    failure_of,
    instability_counters,
    is_finite,
    is_users_interrupt,
    non_finite,
    non_finite_places,
)
from coach_rl.environments.gymnasium.layout import Info, Layout, Leaves, flat_info, layout_of
from coach_rl.environments.gymnasium.own_state import own_state_of
from coach_rl.environments.gymnasium.recipe import Env, Recipe

T = TypeVar("T")


_NUMBERS = (float, int, np.floating, np.integer, np.bool_)


class RowsAnswer(NamedTuple):
    """The answers of rows to a step, in the order of the request; all arrays are new."""

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
    failures: Sequence[tuple[int, RowFailure]] = ()
    """Positions of rows that have failed; their other values are invalid, unless the reset after an
    episode's end has failed: then only their first observation is."""
    starts: Sequence[tuple[int, State | None]] = ()
    """Positions of rows that were reset, each with its generator before; see `EpisodeHistory`."""


class ActionHistory:
    """The actions of an unfinished episode, as the bytes of their flat parts.

    Args:
        parts: The spaces of the flat parts.
    """

    def __init__(self, parts: Sequence[Space]) -> None:
        self._forms: list[tuple[np.dtype[Any], tuple[int, ...]]] = []
        self._bytes: list[bytearray] = []
        self._count = 0
        for part in parts:
            self._forms.append((np.dtype(part.dtype), part.shape or ()))
            self._bytes.append(bytearray())

    def __len__(self) -> int:
        return self._count

    @classmethod
    def of(cls, parts: Sequence[Space], columns: Sequence[Array], count: int) -> Self:
        """The history of these actions, [T, ...] for each part; no columns where T is 0."""
        history = cls(parts)
        for number, column in enumerate(columns):
            history._bytes[number] += np.asarray(column, history._forms[number][0]).tobytes()
        history._count = count
        return history

    def append(self, leaves: Sequence[Any]) -> None:
        """Add the flat parts of an action; arrays or numbers of the space's dtype."""
        for column, leaf in zip(self._bytes, leaves, strict=True):
            column += leaf.tobytes()
        self._count += 1

    def clear(self) -> None:
        for column in self._bytes:
            column.clear()
        self._count = 0

    def arrays(self) -> list[Array]:
        """New arrays of all actions, [T, ...] for each part."""
        return [
            np.ndarray((self._count, *shape), dtype, bytearray(column))
            for column, (dtype, shape) in zip(self._bytes, self._forms, strict=True)
        ]


class EpisodeHistory(NamedTuple):
    """Everything that leads a row to where it is in its unfinished episode."""

    seed: int | None
    """The last seed; None if there was none."""
    start: State | None
    """The generator before the episode's unseeded reset; None after a seeded one."""
    actions: ActionHistory
    """The actions since then."""
    saved: State | None = None
    """The snapshot with a state of the environment's own that the actions follow; None: they follow
    the episode's start."""


class RowsStart(NamedTuple):
    """The first observations of rows, in the order of the request; all arrays are new."""

    observation: Observation
    """[R, ...] each."""
    infos: list[Info]
    """R dicts."""
    failures: Sequence[tuple[int, RowFailure]]
    """Positions of rows that have failed; their observations are invalid."""


class LocalRows:
    """Rows stepped one after the other in this process.

    Args:
        recipe: Recipe of each row's environment.
        numbers: The rows' numbers, for messages.
        keeps_actions: Whether rows store the actions of their episode, so that they can be saved.
    """

    def __init__(
        self, recipe: Recipe, numbers: Sequence[int], *, keeps_actions: bool = True
    ) -> None:
        self._recipe = recipe
        self._level = recipe.level
        self._keeps_actions = keeps_actions
        self._numbers = list(numbers)
        self._rows: list[Row] = []
        self.layout: Layout
        """Mapping of the environments' values to flat arrays."""
        self.now = c_int(0)
        """Its `value` is the row at work: its index in a step, -1 - index in a reset."""
        try:
            for _ in numbers:
                self._rows.append(self._row())
        except BaseException:
            self.close()
            raise

    def shared_layout(self) -> Layout:
        """The layout, as a call to a worker."""
        return self.layout

    def replays_episodes(self) -> bool:
        """True if loading a state takes as many steps as the episodes have."""
        return any(row.own_state is None for row in self._rows)

    def reset(self, seeds: Sequence[int | None]) -> RowsStart:
        return self._started(range(len(self._rows)), seeds)

    def rebuild(self, index: int, seed: int) -> RowsStart:
        """Start a row in a new environment."""
        row = self._rows[index]
        number = self._numbers[index]
        try:
            row.env.close()
        except BaseException as error:  # it has failed, and may fail to close
            if is_users_interrupt(error):
                raise
        try:
            self._rows[index] = self._row()
        except BaseException as error:
            if is_users_interrupt(error):
                raise
            failure = failure_of(
                error, env=None, level=self._level, row=number, verb="construction", given=None
            )
            return RowsStart(self.layout.buffers(1), [{}], [(0, failure)])
        return self._started([index], [seed])

    def step(self, rows: IntArray, action: Action) -> RowsAnswer:
        """Step some rows and reset those whose episode ended.

        Args:
            rows: [R].
            action: [R, ...]; not written to.
        """
        observation = self.layout.buffers(len(rows))
        first: Observation | None = None
        reward = np.zeros(len(rows), np.float64)
        terminated = np.zeros(len(rows), np.bool_)
        truncated = np.zeros(len(rows), np.bool_)
        total = 0.0
        infos: list[Info] = []
        restarts: list[tuple[int, Leaves]] = []
        starts: list[tuple[int, State | None]] = []
        failures: list[tuple[int, RowFailure]] = []
        # An environment may change its action in place; numbers of a flat array cannot be changed.
        given = [
            part if part.ndim == 1 else part.copy() for part in self.layout.action_arrays(action)
        ]
        for place, (index, *leaves) in enumerate(zip(rows.tolist(), *given, strict=True)):
            row = self._rows[index]
            self.now.value = index
            try:
                stepped = row.step(leaves)
                _write(observation, place, stepped.leaves)
            except BaseException as error:
                failures.append((place, self._failure(index, "step", error)))
                _write_nothing(observation, place)
                infos.append({})
                continue
            reward[place] = stepped.reward
            total += stepped.reward
            infos.append(stepped.info)
            if stepped.terminated or stepped.truncated:
                terminated[place] = stepped.terminated
                truncated[place] = stepped.truncated
                self.now.value = -1 - index
                try:
                    restarts.append((place, [np.array(leaf) for leaf in row.reset()[0]]))
                    starts.append((place, row.start))
                except BaseException as error:
                    failures.append((place, self._failure(index, "reset", error)))
        if restarts:
            first = {key: values.copy() for key, values in observation.items()}
            for place, again in restarts:
                _write(first, place, again)
            if not all(map(is_finite, first.values())):
                failures += self._non_finite(rows, first, np.zeros_like(reward), "reset")
        if not (math.isfinite(total) and all(map(is_finite, observation.values()))):
            failures += self._non_finite(rows, observation, reward, "step")
        return RowsAnswer(
            observation,
            first or observation,
            reward,
            terminated,
            truncated,
            infos,
            failures,
            starts,
        )

    def replay(self, indices: Sequence[int], histories: Sequence[EpisodeHistory]) -> RowsStart:
        """Observations of some rows after replaying their unfinished episodes."""
        return self._begun(
            indices,
            [
                partial(self._rows[n].replay, history, self._show_progress)
                for n, history in zip(indices, histories, strict=True)
            ],
        )

    def snapshot(self) -> list[State]:
        """Each row's state."""
        return [row.snapshot() for row in self._rows]

    def restore(self, states: Sequence[State]) -> None:
        """Restore each row from its state."""
        for index, state in enumerate(states):
            self.now.value = index
            self._guarded(index, "replay", self._rows[index].restore, state, self._show_progress)

    def render(self, row: int) -> Array:
        env = self._rows[row].env
        if env.render_mode != "rgb_array":
            raise ConfigurationError(
                f"'{shown_level(self._level)}' was made with render_mode {env.render_mode!r}; "
                "set kwargs={'render_mode': 'rgb_array'}"
            )
        for sdl in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER"):  # else pygame opens a display,
            os.environ.setdefault(sdl, "dummy")  # and complains where there is none
        return np.asarray(self._guarded(row, "render", env.render))

    def close(self) -> list[str]:
        """Warnings about environments that failed to close; all are closed."""
        rows, self._rows = self._rows, []
        made = zip(rows, self._numbers, strict=False)  # not all may have been
        failures: list[str] = []
        for row, number in made:
            failure = close_failure_of(row.env, level=self._level, row=number)
            if failure:
                failures.append(failure)
        return failures

    def _layout_like_first(self, env: object) -> Layout:
        """The layout of this environment, which must be that of the first."""
        layout = layout_of(
            getattr(env, "observation_space", None),
            getattr(env, "action_space", None),
            level=self._level,
        )
        if not self._rows:
            self.layout = layout
        require_one_layout(layout, self.layout, level=self._level)
        return self.layout

    def _row(self) -> "Row":
        """A row in a new environment."""
        env = self._recipe.make()
        return Row(env, self._layout_like_first(env), keeps_actions=self._keeps_actions)

    def _started(self, indices: Sequence[int], seeds: Sequence[int | None]) -> RowsStart:
        """First observations of some rows in a new episode."""
        return self._begun(
            indices,
            [partial(self._rows[n].reset, seed) for n, seed in zip(indices, seeds, strict=True)],
        )

    def _begun(
        self, indices: Sequence[int], begin: Sequence[Callable[[], tuple[Leaves, Info]]]
    ) -> RowsStart:
        """First observations of these rows after calling `begin` of each."""
        observation = self.layout.buffers(len(indices))
        infos: list[Info] = []
        failures: list[tuple[int, RowFailure]] = []
        for place, (index, call) in enumerate(zip(indices, begin, strict=True)):
            self.now.value = -1 - index
            try:
                leaves, info = call()
                _write(observation, place, leaves)
            except BaseException as error:
                failures.append((place, self._failure(index, "reset", error)))
                _write_nothing(observation, place)
                info = {}
            infos.append(info)
        if not all(map(is_finite, observation.values())):
            rows = np.array(indices, np.int64)
            reward = np.zeros(len(indices))
            failures += self._non_finite(rows, observation, reward, "reset")
        return RowsStart(observation, infos, failures)

    def _show_progress(self) -> None:
        """Change the sign of `now`, as a sign of progress in a long replay."""
        self.now.value = -1 - self.now.value

    def _failure(self, index: int, verb: str, error: BaseException) -> RowFailure:
        """The failure of a row; a Ctrl-C of the user in this process is raised again."""
        if is_users_interrupt(error):
            raise error
        row = self._rows[index]
        return failure_of(
            error,
            env=row.env,
            level=self._level,
            row=self._numbers[index],
            verb=verb,
            given=row.given,
        )

    def _non_finite(
        self, rows: IntArray, observation: Observation, reward: FloatArray, verb: str
    ) -> Iterator[tuple[int, RowFailure]]:
        """The failures of rows with NaN or infinity."""
        for place in non_finite_places(observation, reward):
            index = int(rows[place])
            failure = non_finite(
                {key: values[place] for key, values in observation.items()},
                float(reward[place]),
                env=self._rows[index].env,
                level=self._level,
                row=self._numbers[index],
                verb=verb,
            )
            yield place, failure

    def _guarded(self, index: int, verb: str, call: Callable[..., T], *arguments: object) -> T:
        """The call's result; any error becomes a fault that names the row."""
        try:
            return call(*arguments)
        except BaseException as error:
            if isinstance(error, CheckpointError):
                name = f"row {self._numbers[index]} of '{shown_level(self._level)}'"
                raise CheckpointError(f"{name}: {error}") from error
            raise EnvironmentFault(self._failure(index, verb, error).message) from error


class Stepped(NamedTuple):
    """The result of one step of one row."""

    leaves: Leaves
    reward: float
    terminated: bool
    truncated: bool
    info: Info


class Row:
    """A Gymnasium environment and the history of its present episode.

    An environment that offers its own state is saved by that, see `own_state`. Any other one can't
    be saved, but its episode can be replayed from the seed or the state of its random generator at
    the start, with the actions since. Restoring costs a reset and the steps of one unfinished
    episode; storing costs the bytes of one action per step, until the episode ends. State that an
    environment or a wrapper keeps across episodes, other than its `np_random`, is not restored;
    `restore` raises an error if it reaches another state.

    Args:
        env: The environment; owned from now on.
        layout: Mapping of its values to flat arrays.
        keeps_actions: Whether actions are stored; otherwise there is no `snapshot`.
    """

    def __init__(self, env: Env, layout: Layout, *, keeps_actions: bool = True) -> None:
        self.env = env
        self.given: object = None
        """The last result of its `reset` or `step`, for error messages."""
        self.own_state = own_state_of(env)
        """The environment's own state; None: its episodes are replayed."""
        self._layout = layout
        self._instabilities = instability_counters(env)
        self._seed: int | None = None
        """The last seed; None if there was none."""
        self.start: State | None = None
        """The generator before the present episode's unseeded reset; None after a seeded one."""
        is_replayed = keeps_actions and self.own_state is None
        self._actions = ActionHistory(layout.action_parts) if is_replayed else None
        self._rewards = 0.0
        self._steps = 0
        self._last: Leaves = []

    def reset(self, seed: int | None = None) -> tuple[Leaves, Info]:
        """Start an episode; with a seed, restart the random stream as well."""
        if seed is not None:
            self._seed = seed
            self.start = None
        else:
            self.start = generator_of(self.env)
        if self._instabilities is not None:
            self._instabilities[:] = 0
        self.given = answer = self.env.reset(seed=seed)
        observation, info = start_pair(answer)
        if self._actions is not None:
            self._actions.clear()
        self._rewards = 0.0
        self._last = self._layout.leaves(observation)
        return self._last, {} if type(info) is dict and not info else flat_info(info)

    def step(self, leaves: Sequence[object]) -> Stepped:
        """One step with the action that has these flat parts; the caller resets after an end.

        The environment may change arrays among them in place.
        """
        if self._actions is not None:
            self._actions.append(leaves)
        answer: Any = self.env.step(self._layout.nested_action(leaves))
        self.given = answer
        try:
            observation, given, terminated, truncated, info = answer
        except (TypeError, ValueError):
            step_values(answer)  # names what is wrong
            raise
        reward = given if type(given) is float else number(given)
        self._rewards += reward
        self._steps += 1
        self._last = self._layout.leaves(observation, self._steps)
        if type(terminated) is not bool:
            terminated = flag(terminated, "terminated")
        if type(truncated) is not bool:
            truncated = flag(truncated, "truncated")
        if self._instabilities is not None and np.count_nonzero(self._instabilities):
            raise Unstable
        found = {} if type(info) is dict and not info else flat_info(info)
        return Stepped(self._last, reward, terminated, truncated, found)

    def snapshot(self) -> State:
        """Return a snapshot for `restore` that shares no memory with the row.

        The caller adds the observation: the row has only the environment's own arrays, which may
        have changed since.
        """
        state = {
            "seed": self._seed,
            "start": deepcopy(self.start),
            "rewards": self._rewards,
            "generator": generator_of(self.env),
        }
        if self.own_state is not None:
            return {**state, "steps": 0, "actions": {}, "own": self.own_state.save()}
        assert self._actions is not None, "the row does not remember its actions"
        parts = self._actions.arrays() if len(self._actions) else []
        actions = {str(index): part for index, part in enumerate(parts)}
        return {**state, "steps": len(self._actions), "actions": actions}

    def restore(self, state: State, on_step: Callable[[], None]) -> None:
        """Load the environment's own state, or replay the saved episode.

        Raises:
            CheckpointError: The environment did not reach the saved state.
        """
        self.replay(history_of(state, self._layout), on_step)
        self._check_arrival(state)

    def replay(self, history: EpisodeHistory, on_step: Callable[[], None]) -> tuple[Leaves, Info]:
        """The observation after replaying an unfinished episode, and an empty info."""
        if history.saved is None:
            self._begin(history)
        else:
            self._load(history.saved)
        for leaves in zip(*history.actions.arrays(), strict=True):
            self.step(leaves)
            on_step()
        return self._last, {}

    def _begin(self, history: EpisodeHistory) -> None:
        """Start the episode of a history once more."""
        if history.seed is not None:
            self.reset(history.seed)
        if history.start is not None:
            load_generator_state(self.env.unwrapped.np_random, history.start)
            self.reset()
        elif history.seed is None:
            self.reset()

    def _load(self, state: State) -> None:
        """Continue from a snapshot with a state of the environment's own.

        Raises:
            CheckpointError: The environment has none any more.
        """
        if self.own_state is None:
            raise CheckpointError(
                "it was saved by its own state, and does not offer one now: save_state and "
                "restore_state are missing, or a wrapper stands around it"
            )
        self.own_state.restore(state["own"])
        if state["generator"] is not None:
            load_generator_state(self.env.unwrapped.np_random, state["generator"])
        self._seed = state["seed"]
        self.start = deepcopy(state["start"])
        self._rewards = float(state["rewards"])
        self._last = _saved_leaves(state)

    def _check_arrival(self, state: State) -> None:
        saved = _saved_leaves(state)
        pairs = zip(saved, self._last, strict=True)
        same_observation = all(
            _equal(there, np.asarray(here, there.dtype)) for there, here in pairs
        )
        same_rewards = _equal(np.float64(self._rewards), np.float64(state["rewards"]))
        same_generator = _same(state["generator"], generator_of(self.env))
        if not (same_observation and same_rewards and same_generator):
            raise CheckpointError(
                f"the environment is not reproducible: {state['steps']} replayed steps led to "
                "another state than the saved one; it (or a wrapper) uses randomness besides "
                "self.np_random, or carries something over from earlier episodes"
            )


def _saved_leaves(state: State) -> Leaves:
    """The observation in a row's snapshot."""
    return [state["observation"][str(index)] for index in range(len(state["observation"]))]


def history_of(state: State, layout: Layout) -> EpisodeHistory:
    """The episode history in a row's snapshot."""
    columns = [state["actions"][str(index)] for index in range(len(state["actions"]))]
    actions = ActionHistory.of(layout.action_parts, columns, state["steps"])
    return EpisodeHistory(
        state["seed"], state["start"], actions, saved=state if "own" in state else None
    )


def generator_of(env: Env) -> State | None:
    """The state of the environment's random generator; None when it has none of numpy's kind."""
    rng = getattr(env.unwrapped, "np_random", None)
    return generator_state(rng) if isinstance(rng, np.random.Generator) else None


def require_one_layout(layout: Layout, first: Layout, *, level: str) -> None:
    """Raise `SpaceError` unless a row's layout is that of the first."""
    if layout != first:
        raise SpaceError(
            f"two rows of '{shown_level(level)}' have different spaces: {layout.spaces} and "
            f"{first.spaces}; every row must have the same"
        )


def start_pair(answer: object) -> tuple[Any, ...]:
    """Observation and info, as `reset` returns them; OldInterface if it has returned another."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise OldInterface("it gave no pair (observation, info)")
    return answer


def step_values(answer: object) -> Sequence[Any]:
    """Observation, reward, ends and info, as `step` returns them.

    Raises:
        EnvironmentFault: It has returned something else.
    """
    if isinstance(answer, tuple | list) and len(answer) == 5:
        return answer
    if isinstance(answer, tuple):
        raise OldInterface(f"step gave {len(answer)} values, not 5")
    raise EnvironmentFault(
        "step must return (observation, reward, terminated, truncated, info), got "
        f"{shown_value(answer, 200)}"
    )


def number(reward: object, name: str = "the reward") -> float:
    """A reward as a float, from a number of any kind; EnvironmentFault if it is none."""
    is_array = type(reward) is np.ndarray and not reward.ndim and reward.dtype.kind in "biuf"
    if is_array or isinstance(reward, _NUMBERS):
        with suppress(OverflowError):  # of an integer of more digits than a float has
            return float(reward)  # type: ignore[arg-type]  # one of the above
    raise EnvironmentFault(f"{name} must be a number, got {shown_value(reward, 200)}")


def flag(value: object, name: str) -> bool:
    """An episode's end as a bool, from a bool, 0 or 1; EnvironmentFault if it is none."""
    is_flag = isinstance(value, int | np.generic | np.ndarray) and not np.ndim(value)
    if not is_flag or np.asarray(value).dtype.kind not in "biu" or value not in (0, 1):
        raise EnvironmentFault(f"{name} must be True or False, got {shown_value(value, 200)}")
    return bool(value)


def _write(observation: Observation, place: int, leaves: Leaves) -> None:
    for values, leaf in zip(observation.values(), leaves, strict=True):
        values[place] = leaf


def _write_nothing(observation: Observation, place: int) -> None:
    for values in observation.values():
        values[place] = 0


def _same(left: object, right: object) -> bool:
    """Return whether two generator states agree; some kinds contain arrays."""
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[key], right[key]) for key in left)
    return bool(np.array_equal(np.asarray(left), np.asarray(right)))


def _equal(left: Array | np.generic, right: Array | np.generic) -> bool:
    floating = np.issubdtype(left.dtype, np.inexact)
    return np.array_equal(left, right, equal_nan=floating)
