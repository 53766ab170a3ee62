"""N MuJoCo environments that step at once."""

from collections.abc import Iterable, Sequence
from typing import Any

import mujoco
import numpy as np
from gymnasium import spaces as gym_spaces
from gymnasium.utils import seeding

from coach_rl.core.errors import (
    ActionError,
    CheckpointError,
    EnvironmentFault,
    NonFiniteError,
    ParameterError,
    RunError,
    require,
)
from coach_rl.core.marks import Mark, Place
from coach_rl.core.records import (
    Action,
    Array,
    Directive,
    End,
    EnvResponse,
    FloatArray,
    IntArray,
    Observation,
    take,
)
from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.environments.mujoco.inbox import Inbox
from coach_rl.environments.mujoco.render import FrameRenderer
from coach_rl.environments.mujoco.simulators import Simulators
from coach_rl.environments.mujoco.task import MujocoState, MujocoTask, Scene

_OBSERVATION = "observation"
_NO_LIMIT = np.iinfo(np.int64).max
_TERMINATED, _TRUNCATED = np.uint8(End.TERMINATED), np.uint8(End.TRUNCATED)
_STABLER = "use smaller actions or a shorter time step in the MJCF file, then reset()"


class MujocoBatch:
    """An `Environment` of N MuJoCo simulators, and `MarkRenderable`.

    Rows are stepped in `recv`, by threads; `send` checks and keeps the actions. Observations,
    rewards and ends are computed for all answering rows at once. The result does not depend on the
    number of threads or on which rows are sent together.

    Args:
        task: What is simulated and what it is worth.
        num_envs: N.
        max_episode_steps: Steps after which an episode is truncated; None: never.
        threads: How many threads step, the calling one included.
    """

    def __init__(
        self, task: MujocoTask, *, num_envs: int, max_episode_steps: int | None, threads: int
    ) -> None:
        require(num_envs >= 1, f"num_envs must be 1 or more, got {num_envs}")
        self._task = task
        self._limit = _NO_LIMIT if max_episode_steps is None else max_episode_steps
        self._scene = Scene(task.load(), task.frame_skip)
        self._simulators = Simulators(
            self._scene.model,
            num_envs=num_envs,
            frame_skip=task.frame_skip,
            reads=task.reads,
            threads=min(threads, num_envs),
        )
        self._all_rows: IntArray = np.arange(num_envs)
        self._generators: list[np.random.Generator] = []
        self._state = MujocoState(self._scene, self._simulators.gather())
        self._elapsed: IntArray = np.zeros(num_envs, np.int64)
        self._started = False
        action_space = _action_space(self._scene.model)
        self._inbox = Inbox(action_space, num_envs)
        self._nothing = _answer_for_nobody(task, self._state, action_space)
        self._spaces = EnvironmentSpaces(
            observation=_observation_space(self._nothing.observation), action=action_space
        )
        self._renderer: FrameRenderer | None = None
        self._ended: dict[int, FloatArray | None] = {}
        """Of rows that were drawn: the simulator's last state in the last episode, [S]; None before
        an episode has ended."""

    @property
    def num_envs(self) -> int:
        """N."""
        return len(self._all_rows)

    @property
    def spaces(self) -> EnvironmentSpaces:
        """What one row shows and takes."""
        return self._spaces

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        """Start every row anew and drop what is open.

        Args:
            seed: An integer gives row i the seed `seed + i`, a sequence gives each row its own,
                None goes on with the random streams as they are (fresh ones at the first call).

        Returns:
            A response for all rows with `duration` 0.

        Raises:
            ParameterError: The seeds are no whole numbers of 0 or more, one per row.
        """
        seeds = _row_seeds(seed, self.num_envs)
        if seeds is not None:
            self._generators = [seeding.np_random(row_seed)[0] for row_seed in seeds]
        elif not self._generators:
            self._generators = [seeding.np_random()[0] for _ in self._all_rows]
        self._inbox.clear()
        self._state = self._restarted(self._all_rows.tolist())
        self._elapsed = np.zeros(self.num_envs, np.int64)
        self._started = True
        observation = _observed(self._task, self._state)
        _check_finite(observation.values(), self._all_rows, "reset")
        info = self._task.reset_info(self._state)
        return EnvResponse(
            rows=self._all_rows.copy(),
            observation=observation,
            first_observation=observation,
            reward=np.zeros(self.num_envs, np.float64),
            terminated=np.zeros(self.num_envs, np.bool_),
            truncated=np.zeros(self.num_envs, np.bool_),
            end=np.zeros(self.num_envs, np.uint8),
            duration=np.zeros(self.num_envs, np.int64),
            info={key: _owned(values) for key, values in info.items()},
        )

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        """Tell some rows what to do.

        Args:
            directive: Actions [R, A] within the action space, bare or in a Directive.
            rows: [R], each row at most once; None: all.

        Raises:
            ActionError: An action does not fit the space, a row is open or does not exist, or
                nothing was reset.
        """
        if not self._started:
            raise ActionError("the environment has no episode to act in; call reset() first")
        self._inbox.put(directive.action if isinstance(directive, Directive) else directive, rows)

    def recv(self) -> EnvResponse:
        """Step all rows that were sent an action and answer for them, in the order of sending.

        Raises:
            NonFiniteError: A simulation became unstable. The environment must be reset then.
            EnvironmentFault: MuJoCo itself failed. The environment must be reset then.
        """
        if not self._inbox:
            return self._nothing
        rows, action = self._inbox.take()
        self._started = False  # stays so if a row fails: some rows have stepped then, others not
        answer = self._stepped(rows, action)
        self._started = True
        return answer

    def render(self, row: int = 0, marks: Sequence[Mark] = ()) -> Array:
        """One frame of a row, uint8 [height, width, 3].

        Args:
            row: Which.
            marks: Drawn into this frame alone; nothing that is simulated changes.

        Raises:
            RunError: No OpenGL can be had on this machine.
        """
        self._ended.setdefault(self._drawn_row(row), None)
        return self._frames().frame(self._simulators.data[row], marks)

    def render_ended(self, row: int = 0, marks: Sequence[Mark] = ()) -> Array:
        """As `render`, of the last state of the row's last episode, which it has left.

        Raises:
            RunError: No episode of the row has ended since `render` first drew it.
        """
        ended = self._ended.get(self._drawn_row(row))
        if ended is None:
            raise RunError(f"no episode of row {row} has ended since render({row}) was first used")
        return self._frames().frame(self._simulators.at(ended), marks)

    def goal_place(
        self, key: str, elements: tuple[int, ...] | None, goal: FloatArray
    ) -> Place | None:
        """Where a goal lies in the scene, as the task has it; None where that cannot be said."""
        chosen = tuple(range(len(goal))) if elements is None else elements
        return self._task.goal_place(key, chosen, goal)

    def state_dict(self) -> State:
        """Everything that decides how the rows go on, to the last bit."""
        return {
            "simulators": self._simulators.state(),
            "arrays": {name: array.copy() for name, array in self._state.arrays.items()},
            "generators": {
                str(row): generator_state(rng) for row, rng in enumerate(self._generators)
            },
            "elapsed": self._elapsed.copy(),
            "started": self._started,
            "inbox": self._inbox.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        """Take over a state made by `state_dict` of an equally built batch.

        Raises:
            CheckpointError: The state is of another task or number of rows.
        """
        ours = {name: array.shape for name, array in self._state.arrays.items()}
        theirs = {name: np.shape(array) for name, array in state["arrays"].items()}
        simulators = np.asarray(state["simulators"], np.float64)
        if theirs != ours or simulators.shape != self._simulators.state().shape:
            raise CheckpointError(
                f"the saved MuJoCo state is of another task or number of rows: it holds {theirs}, "
                f"{type(self._task).__name__} with {self.num_envs} rows needs {ours}"
            )
        self._simulators.load_state(simulators)
        arrays = {name: np.array(array, np.float64) for name, array in state["arrays"].items()}
        self._state = MujocoState(self._scene, arrays)
        self._generators = [np.random.default_rng(0) for _ in state["generators"]]
        for row, rng in enumerate(self._generators):
            load_generator_state(rng, state["generators"][str(row)])
        self._elapsed = np.array(state["elapsed"], np.int64)
        self._started = bool(state["started"])
        self._inbox.load_state_dict(state["inbox"])

    def close(self) -> None:
        """End the threads and free the renderer; harmless when repeated."""
        self._simulators.close()
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _frames(self) -> FrameRenderer:
        if self._renderer is None:
            self._renderer = FrameRenderer(self._scene.model, self._task)
        return self._renderer

    def _drawn_row(self, row: int) -> int:
        if not 0 <= row < self.num_envs:
            raise ActionError(f"there are rows 0 to {self.num_envs - 1} to render, got {row}")
        return row

    def _stepped(self, rows: IntArray, action: FloatArray) -> EnvResponse:
        """The physics of some rows, and what it was worth; all rows in order take the short way."""
        chosen: list[int] = rows.tolist()
        is_all = len(rows) == self.num_envs and rows.tobytes() == self._all_rows.tobytes()
        some = None if is_all else chosen
        self._simulators.step(action.astype(np.float64), chosen)
        unstable = self._simulators.first_unstable(some)
        if unstable is not None:
            raise NonFiniteError(
                f"the simulation of row {unstable} became unstable (NaN, infinity or a huge "
                f"number in its state); {_STABLER}"
            )
        before = self._state if is_all else self._state.take(rows)
        after = MujocoState(self._scene, self._simulators.gather(some))
        observation = _observed(self._task, after)
        reward, terminated, info = self._task.judge(before, action, after)
        _check_finite((*observation.values(), reward), rows, "step")
        self._state = after if is_all else self._state.replaced(rows, after)
        index = slice(None) if is_all else rows
        self._elapsed[index] += 1
        truncated = self._elapsed[index] >= self._limit
        first, end = observation, np.zeros(len(rows), np.uint8)
        duration: IntArray = np.empty(len(rows), np.int64)
        duration.fill(1)
        if np.count_nonzero(terminated) or np.count_nonzero(truncated):
            end = np.where(terminated, _TERMINATED, 0) + np.where(truncated, _TRUNCATED, 0)
            first = self._first(rows, observation, over=np.flatnonzero(end))
        return EnvResponse(
            rows=rows.copy(),
            observation=observation,
            first_observation=first,
            reward=_owned(reward),
            terminated=_owned(terminated),
            truncated=truncated,
            end=end,
            duration=duration,
            info={key: _owned(values) for key, values in info.items()},
        )

    def _first(self, rows: IntArray, observation: Observation, *, over: IntArray) -> Observation:
        """What the rows act on next: those whose episode is over start a new one."""
        for row in self._ended.keys() & set(rows[over].tolist()):
            self._ended[row] = self._simulators.state_of(row)
        restarted = self._restarted(rows[over].tolist())
        self._state = self._state.replaced(rows[over], restarted)
        self._elapsed[rows[over]] = 0
        first = {key: values.copy() for key, values in observation.items()}
        for key, values in _observed(self._task, restarted).items():
            first[key][over] = values
        _check_finite(first.values(), rows, "reset")
        return first

    def _restarted(self, rows: list[int]) -> MujocoState:
        """Start an episode in some rows, each with its own random stream."""
        for row in rows:
            self._simulators.restart(row, self._task, self._scene, self._generators[row])
        return MujocoState(self._scene, self._simulators.gather(rows))


def _observed(task: MujocoTask, state: MujocoState) -> Observation:
    observation = task.observation(state)
    if isinstance(observation, dict):
        return {key: _owned(values) for key, values in observation.items()}
    return {_OBSERVATION: _owned(observation)}


def _owned(values: Array) -> Array:
    """The array, or a copy where it may look into the state, which answers must not give away."""
    return values if values.base is None else values.copy()


def _action_space(model: mujoco.MjModel) -> gym_spaces.Box:
    """The actuators' control ranges; an actuator without limits takes any number."""
    limited = model.actuator_ctrllimited.astype(np.bool_)[:, None]
    bounds = np.where(limited, model.actuator_ctrlrange, (-np.inf, np.inf)).astype(np.float32)
    return gym_spaces.Box(bounds[:, 0].copy(), bounds[:, 1].copy(), dtype=np.float32)


def _observation_space(observation: Observation) -> gym_spaces.Dict:
    return gym_spaces.Dict(
        {
            key: gym_spaces.Box(-np.inf, np.inf, values.shape[1:], values.dtype.type)
            for key, values in observation.items()
        }
    )


def _answer_for_nobody(
    task: MujocoTask, state: MujocoState, action_space: gym_spaces.Box
) -> EnvResponse:
    """An answer for no rows, with the keys, shapes and dtypes of every answer.

    Raises:
        EnvironmentFault: What the task's methods return does not fit.
    """
    name, rows = type(task).__name__, len(state.arrays[task.reads[0]])
    observation = _observed(task, state)
    action: FloatArray = np.zeros((rows, *action_space.shape), np.float32)
    reward, terminated, info = task.judge(state, action, state)
    for key, values in {**observation, **info}.items():
        if np.shape(values)[:1] != (rows,):
            raise EnvironmentFault(
                f"{name} gave '{key}' of shape {np.shape(values)} for {rows} rows, "
                f"expected ({rows}, ...)"
            )
    for key, values in (("reward", reward), ("terminated", terminated)):
        if np.shape(values) != (rows,):
            raise EnvironmentFault(
                f"{name} gave '{key}' of shape {np.shape(values)}, expected ({rows},)"
            )
    if terminated.dtype != np.bool_:
        raise EnvironmentFault(f"{name}.terminated must be boolean, got {terminated.dtype}")
    nobody: IntArray = np.zeros(0, np.int64)
    return EnvResponse(
        rows=nobody,
        observation=take(observation, nobody),
        first_observation=take(observation, nobody),
        reward=reward[:0].copy(),
        terminated=terminated[:0].copy(),
        truncated=np.zeros(0, np.bool_),
        end=np.zeros(0, np.uint8),
        duration=np.zeros(0, np.int64),
        info=take(info, nobody),
    )


def _row_seeds(seed: int | Sequence[int] | None, num_envs: int) -> list[int] | None:
    """A seed per row, or None."""
    if seed is None:
        return None
    seeds: list[Any]
    if isinstance(seed, int | np.integer):
        seeds = [int(seed) + row for row in range(num_envs)]
    else:
        seeds = list(seed) if np.iterable(seed) else [seed]
    if not all(isinstance(one, int | np.integer) and one >= 0 for one in seeds):
        raise ParameterError(f"a seed is a whole number of 0 or more, got {seed!r}")
    if len(seeds) != num_envs:
        raise ParameterError(f"reset needs a seed for each of {num_envs} rows, got {len(seeds)}")
    return [int(one) for one in seeds]


def _check_finite(arrays: Iterable[Array], rows: IntArray, when: str) -> None:
    for values in arrays:
        finite = np.isfinite(values)
        if np.count_nonzero(finite) < finite.size:
            row = int(rows[np.flatnonzero(~finite.reshape(len(values), -1).all(axis=1))[0]])
            raise NonFiniteError(
                f"the {when} of row {row} gave NaN or infinity as observation or reward; {_STABLER}"
            )
