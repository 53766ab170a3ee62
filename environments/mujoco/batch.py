"""N MuJoCo environments that step at once."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from gymnasium import spaces as gym_spaces
from gymnasium.utils import seeding

from coach_rl.core.errors import (
    ActionError,
    CheckpointError,
    EnvironmentFault,
    NonFiniteError,
    RunError,
    require,
)
from coach_rl.core.interfaces import Mark, Place
from coach_rl.core.records import (
    Action,
    Array,
    BoolArray,
    Directive,
    EnvResponse,
    Fault,
    FloatArray,
    IntArray,
    Observation,
)
from coach_rl.core.seeding import generator_state, load_generator_state
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.core.state import State
from coach_rl.environments.faults import (
    FaultLedger,
    FaultParameters,
    is_finite,
    non_finite,
    unstable_failure,
)
from coach_rl.environments.inbox import FloatInbox, row_seeds
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.mujoco.render import FrameRenderer
from coach_rl.environments.mujoco.simulators import Simulators
from coach_rl.environments.mujoco.task import MujocoState, MujocoTask, Scene

_OBSERVATION = "observation"
_NO_LIMIT = np.iinfo(np.int64).max
_STABLER = "use smaller actions or a shorter time step in the MJCF file"


class MujocoBatch:
    """An `Environment` of N MuJoCo simulators, and `MarkRenderable`.

    Rows are stepped in `recv`, by threads; `send` checks and keeps the actions. Observations,
    rewards and ends are computed for all answering rows at once. The result does not depend on the
    number of threads or on which rows are sent together.

    Args:
        task: The model, observations and rewards.
        num_envs: N.
        max_episode_steps: Steps after which an episode is truncated; None: never.
        threads: Number of threads that step, the calling one included.
        faults: The response to unstable simulations and NaN; None: the defaults.

    Attributes:
        scene: The model and its rest pose.
        simulators: The rows' `MjData`, for reading.
    """

    def __init__(
        self,
        task: MujocoTask,
        *,
        num_envs: int,
        max_episode_steps: int | None,
        threads: int,
        faults: FaultParameters | None = None,
    ) -> None:
        require(num_envs >= 1, f"num_envs must be 1 or more, got {num_envs}")
        self._task = task
        self._limit = _NO_LIMIT if max_episode_steps is None else max_episode_steps
        self.scene = Scene(task.load(), task.frame_skip)
        self.simulators = Simulators(
            self.scene.model,
            num_envs=num_envs,
            frame_skip=task.frame_skip,
            reads=task.reads,
            threads=min(threads, num_envs),
            advance=self._advance if task.has_own_advance else None,
        )
        self._all_rows: IntArray = np.arange(num_envs)
        self._all_in_order = self._all_rows.tobytes()
        self._ledger = FaultLedger(faults or FaultParameters(), num_envs=num_envs)
        self._generators: list[np.random.Generator] = []
        self._state = MujocoState(self.scene, self.simulators.gather())
        self._elapsed: IntArray = np.zeros(num_envs, np.int64)
        action_space = _action_space(self.scene.model)
        self._inbox = FloatInbox(action_space, num_envs=num_envs)
        self._first_answer = _first_answer(task, self._state, action_space)
        self._spaces = EnvironmentSpaces(
            observation=_observation_space(self._first_answer.observation), action=action_space
        )
        self._renderer: FrameRenderer | None = None
        self._ended: dict[int, FloatArray | None] = {}
        """Last state [S] of the previous episode of rows that were rendered; None before there is
        one."""

    @property
    def num_envs(self) -> int:
        return len(self._all_rows)

    @property
    def spaces(self) -> EnvironmentSpaces:
        return self._spaces

    @cached_property
    def _nothing(self) -> EnvResponse:
        """An answer of zero rows, with the keys, shapes and dtypes of every answer."""
        first = self._first_answer
        answer = EnvResponse.step(
            self._all_rows,
            observation=first.observation,
            first_observation=first.observation,
            reward=first.reward,
            terminated=first.terminated,
            truncated=np.zeros(self.num_envs, np.bool_),
            info=first.info,
        )
        return answer.empty_like()

    def reset(self, seed: int | Sequence[int] | None = None) -> EnvResponse:
        seeds = row_seeds(seed, self.num_envs)
        if seeds is not None:
            self._generators = [seeding.np_random(row_seed)[0] for row_seed in seeds]
            self._ledger.reset(seeds)
        elif not self._generators:
            self._generators = [seeding.np_random()[0] for _ in self._all_rows]
        self._inbox.stop("the last reset failed; call reset first")
        self._state = self._restarted(self._all_rows.tolist())
        self._elapsed = np.zeros(self.num_envs, np.int64)
        observation = _observed(self._task, self._state)
        _check_finite(observation.values(), self._all_rows, "reset")
        info = {key: _owned(values) for key, values in self._task.reset_info(self._state).items()}
        self._inbox.start()
        return EnvResponse.reset(observation, num_envs=self.num_envs, info=info)

    def send(self, directive: Directive | Action, rows: IntArray | None = None) -> None:
        self._inbox.put(directive, rows)

    def recv(self) -> EnvResponse:
        """See `Environment.recv`.

        Raises:
            NonFiniteError: A simulation became unstable or the task returned NaN, and the
                parameters stop the run. The environment must be reset then.
            EnvironmentFault: It happened too often, or MuJoCo itself failed. The same.
        """
        rows, action = self._inbox.take()
        if not len(rows):
            return self._nothing
        assert not isinstance(action, dict)  # a Box takes none
        try:
            return self._stepped(rows, action)
        except BaseException as error:
            self._inbox.stop_after(error)
            raise

    def render(self, row: int = 0, marks: Sequence[Mark] = ()) -> Array:
        """One frame of a row, uint8 [height, width, 3].

        Args:
            row: Number of the row.
            marks: Drawn into this frame only; the simulation does not change.

        Raises:
            RunError: OpenGL is not available.
        """
        self._ended.setdefault(self._drawn_row(row), None)
        return self._frames().frame(self.simulators.data[row], marks)

    def render_ended(self, row: int = 0, marks: Sequence[Mark] = ()) -> Array:
        """A frame of the last state of the row's previous episode, see `render`.

        Raises:
            RunError: No episode of the row has ended since `render` first drew it.
        """
        ended = self._ended.get(self._drawn_row(row))
        if ended is None:
            raise RunError(f"no episode of row {row} has ended since render({row}) was first used")
        return self._frames().frame(self.simulators.at(ended), marks)

    def goal_place(
        self, key: str, elements: tuple[int, ...] | None, goal: FloatArray
    ) -> Place | None:
        """The goal's position in the scene, from the task; None if it has none."""
        chosen = tuple(range(len(goal))) if elements is None else elements
        return self._task.goal_place(key, chosen, goal)

    def state_dict(self) -> State:
        return {
            "simulators": self.simulators.state(),
            "arrays": {name: array.copy() for name, array in self._state.arrays.items()},
            "generators": {
                str(row): generator_state(rng) for row, rng in enumerate(self._generators)
            },
            "elapsed": self._elapsed.copy(),
            "inbox": self._inbox.state_dict(),
            "faults": self._ledger.state_dict(),
        }

    def load_state_dict(self, state: State) -> None:
        """Restore the state of a batch that was built alike.

        Raises:
            CheckpointError: The state is of another task or number of rows.
        """
        ours = {name: array.shape for name, array in self._state.arrays.items()}
        theirs = {name: np.shape(array) for name, array in state["arrays"].items()}
        simulators = np.asarray(state["simulators"], np.float64)
        if theirs != ours or simulators.shape != (self.num_envs, self.simulators.state_size):
            raise CheckpointError(
                f"the saved MuJoCo state is of another task or number of rows: it holds {theirs}, "
                f"{type(self._task).__name__} with {self.num_envs} rows needs {ours}"
            )
        self.simulators.load_state(simulators)
        arrays = {name: np.array(array, np.float64) for name, array in state["arrays"].items()}
        self._state = MujocoState(self.scene, arrays)
        self._generators = [np.random.default_rng(0) for _ in state["generators"]]
        for row, rng in enumerate(self._generators):
            load_generator_state(rng, state["generators"][str(row)])
        self._elapsed = np.array(state["elapsed"], np.int64)
        self._inbox.load_state_dict(state["inbox"])
        self._ledger.load_state_dict(state["faults"])

    def close(self) -> None:
        """End the threads and free the renderer; may be repeated."""
        self.simulators.close()
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _advance(self, row: int, action: FloatArray) -> None:
        self._task.advance(self.scene, self.simulators.data[row], action, self._generators[row])

    def _frames(self) -> FrameRenderer:
        if self._renderer is None:
            self._renderer = FrameRenderer(self.scene.model, self._task)
        return self._renderer

    def _drawn_row(self, row: int) -> int:
        if not 0 <= row < self.num_envs:
            raise ActionError(f"there are rows 0 to {self.num_envs - 1} to render, got {row}")
        return row

    def _stepped(self, rows: IntArray, action: FloatArray) -> EnvResponse:
        """The answer of some rows; a step of all rows in order avoids copies."""
        chosen: list[int] = rows.tolist()
        is_all = rows.tobytes() == self._all_in_order
        some = None if is_all else chosen
        self.simulators.step(action.astype(np.float64), chosen)
        unstable = self.simulators.unstable(some)
        before = self._state if is_all else self._state.take(rows)
        after = MujocoState(self.scene, self.simulators.gather(some))
        observation = _observed(self._task, after)
        reward, terminated, info = self._task.judge(before, action, after)
        index = slice(None) if is_all else rows
        truncated = self._elapsed[index] >= self._limit - 1
        self._ledger.steps += len(rows)
        lost: BoolArray | None = None
        faults: tuple[Fault, ...] = ()
        if unstable is not None or not all(map(is_finite, (reward, *observation.values()))):
            lost, faults = self._lost(rows, before, action, observation, reward, unstable)
            reward = np.where(lost, 0.0, reward)
            terminated = terminated & ~lost
            truncated = truncated | lost
            for key, values in _observed(self._task, before).items():
                observation[key][lost] = values[lost]
        self._state = after if is_all else self._state.replaced(rows, after)
        self._elapsed[index] += 1
        first = observation
        if np.count_nonzero(terminated) or np.count_nonzero(truncated):
            first = self._first(rows, observation, over=np.flatnonzero(terminated | truncated))
        return EnvResponse.step(
            rows,
            observation=observation,
            first_observation=first,
            reward=_owned(reward),
            terminated=_owned(terminated),
            truncated=truncated,
            info={key: _owned(values) for key, values in info.items()},
            lost=lost,
            faults=faults,
        )

    def _lost(
        self,
        rows: IntArray,
        before: MujocoState,
        action: FloatArray,
        observation: Observation,
        reward: FloatArray,
        unstable: BoolArray | None,
    ) -> tuple[BoolArray, tuple[Fault, ...]]:
        """Rows that have failed, [R], and their faults; they get new random streams.

        Args:
            rows: [R].
            before: States on which they acted.
            action: [R, A].
            observation: [R, ...] each.
            reward: [R].
            unstable: [R] rows with a warning of MuJoCo; None: no row.
        """
        failed = np.zeros(len(rows), np.bool_) if unstable is None else unstable.copy()
        for values in (reward, *observation.values()):
            failed |= ~np.isfinite(values).reshape(len(rows), -1).all(axis=1)
        self._ledger.steps -= int(np.count_nonzero(failed))
        faults = []
        level = type(self._task).__name__
        acted_on = _observed(self._task, before)
        for place in np.flatnonzero(failed).tolist():
            row = int(rows[place])
            failure = (
                unstable_failure(level=level, row=row)
                if unstable is not None and unstable[place]
                else non_finite(
                    {key: values[place] for key, values in observation.items()},
                    float(reward[place]),
                    env=self._task,
                    level=level,
                    row=row,
                    verb="step",
                )
            )
            context = {f"acted_on/{key}": values[place] for key, values in acted_on.items()}
            faults.append(self._ledger.record(failure, action=action[place], **context))
            self._generators[row] = seeding.np_random(self._ledger.fresh_seed(row))[0]
        return failed, tuple(faults)

    def _first(self, rows: IntArray, observation: Observation, *, over: IntArray) -> Observation:
        """Next observations of rows, [R, ...] each; rows whose episode is over start a new one."""
        for row in self._ended.keys() & set(rows[over].tolist()):
            self._ended[row] = self.simulators.state_of(row)
        restarted = self._restarted(rows[over].tolist())
        self._state = self._state.replaced(rows[over], restarted)
        self._elapsed[rows[over]] = 0
        first: Observation = {}
        for key, values in _observed(self._task, restarted).items():
            first[key] = observation[key].copy()
            first[key][over] = values
        _check_finite(first.values(), rows, "reset")
        return first

    def _restarted(self, rows: list[int]) -> MujocoState:
        """States of some rows after the start of an episode, each from its own random stream."""
        for row in rows:
            self.simulators.restart(row, self._task, self.scene, self._generators[row])
        return MujocoState(self.scene, self.simulators.gather(rows))


def _observed(task: MujocoTask, state: MujocoState) -> Observation:
    observation = task.observation(state)
    if isinstance(observation, dict):
        return {key: _owned(values) for key, values in observation.items()}
    return {_OBSERVATION: _owned(observation)}


def _owned(values: Array) -> Array:
    """The array, or a copy of a view: answers must not share memory with the state."""
    return values if values.base is None else values.copy()


def _action_space(model: mujoco.MjModel) -> gym_spaces.Box:
    """The actuators' control ranges; infinite for an actuator without limits."""
    limited = model.actuator_ctrllimited.astype(np.bool_)[:, None]
    bounds = np.where(limited, model.actuator_ctrlrange, (-np.inf, np.inf)).astype(np.float32)
    return gym_spaces.Box(bounds[:, 0].copy(), bounds[:, 1].copy(), dtype=np.float32)


def _observation_space(observation: Observation) -> gym_spaces.Dict:
    parts: dict[str, gym_spaces.Space[Array]] = {}
    for key, values in observation.items():
        parts[key] = gym_spaces.Box(-np.inf, np.inf, values.shape[1:], values.dtype.type)
    return gym_spaces.Dict(parts)


class _Answer(NamedTuple):
    """A task's answer to all rows, [N, ...] each."""

    observation: Observation
    reward: FloatArray
    terminated: BoolArray
    info: dict[str, Array]


def _first_answer(task: MujocoTask, state: MujocoState, action_space: gym_spaces.Box) -> _Answer:
    """The answer of a task to actions of 0 that change nothing, whose arrays are checked.

    Raises:
        EnvironmentFault: The task's methods return arrays of a wrong shape or kind.
    """
    name = type(task).__name__
    rows = len(state.arrays[task.reads[0]])
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
    return _Answer(observation, reward, terminated, info)


def _check_finite(arrays: Iterable[Array], rows: IntArray, when: str) -> None:
    for values in arrays:
        finite = np.isfinite(values)
        if np.count_nonzero(finite) < finite.size:
            row = int(rows[np.flatnonzero(~finite.reshape(len(values), -1).all(axis=1))[0]])
            raise NonFiniteError(
                f"the {when} of row {row} gave NaN or infinity as observation or reward; {_STABLER}"
            )
