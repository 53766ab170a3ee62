"""N MuJoCo environments that step at once."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium import spaces as gym_spaces
from gymnasium.utils import seeding

from coach_rl.core.errors import (
    ActionError,
    CheckpointError,
    EnvironmentFault,
    NonFiniteError,
    ParameterError,
    require,
)
from coach_rl.core.records import (
    Action,
    Array,
    BoolArray,
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
from coach_rl.environments.mujoco.render import FrameRenderer
from coach_rl.environments.mujoco.simulators import Simulators
from coach_rl.environments.mujoco.task import MujocoState, MujocoTask, Scene

_OBSERVATION = "observation"
_NO_LIMIT = np.iinfo(np.int64).max
_TERMINATED, _TRUNCATED = np.uint8(End.TERMINATED), np.uint8(End.TRUNCATED)
_STABLER = "use smaller actions or a shorter time step in the MJCF file, then reset()"


class MujocoBatch:
    """An `Environment` of N MuJoCo simulators, and `Renderable`.

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
        model = task.load()
        model.vis.global_.offwidth = max(model.vis.global_.offwidth, task.width)
        model.vis.global_.offheight = max(model.vis.global_.offheight, task.height)
        self._task = task
        self._limit = _NO_LIMIT if max_episode_steps is None else max_episode_steps
        self._scene = Scene(model, task.frame_skip)
        self._simulators = Simulators(
            model,
            num_envs=num_envs,
            frame_skip=task.frame_skip,
            reads=task.reads,
            threads=min(threads, num_envs),
        )
        self._all_rows: IntArray = np.arange(num_envs)
        self._all_bytes = self._all_rows.tobytes()
        self._generators: list[np.random.Generator] = []
        self._state = MujocoState(self._scene, self._simulators.gather())
        self._elapsed: IntArray = np.zeros(num_envs, np.int64)
        self._started = False
        self._open: BoolArray = np.zeros(num_envs, np.bool_)
        self._sent: list[tuple[IntArray, FloatArray]] = []
        self._renderer: FrameRenderer | None = None
        self._low, self._high = _control_bounds(model)
        self._nothing = self._probe()
        self._spaces = EnvironmentSpaces(
            observation=_observation_space(self._nothing.observation),
            action=gym_spaces.Box(self._low, self._high, dtype=np.float32),
        )

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
        self._drop_open()
        self._state = self._restarted(self._all_rows.tolist())
        self._elapsed = np.zeros(self.num_envs, np.int64)
        self._started = True
        observation = self._observed(self._state)
        _check_finite(observation.values(), self._all_rows, "reset")
        return EnvResponse(
            rows=self._all_rows.copy(),
            observation=observation,
            first_observation=observation,
            reward=np.zeros(self.num_envs, np.float64),
            terminated=np.zeros(self.num_envs, np.bool_),
            truncated=np.zeros(self.num_envs, np.bool_),
            end=np.zeros(self.num_envs, np.uint8),
            duration=np.zeros(self.num_envs, np.int64),
            info=self._task.reset_info(self._state),
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
        action = directive.action if isinstance(directive, Directive) else directive
        if not self._started:
            raise ActionError("the environment has no episode to act in; call reset() first")
        chosen = self._all_rows if rows is None else _checked_rows(rows, self.num_envs)
        actions = self._checked_action(action, chosen)
        if self._sent and self._open[chosen].any():
            row = int(chosen[self._open[chosen]][0])
            raise ActionError(f"row {row} still has an open decision; call recv() before sending")
        self._open[chosen] = True
        self._sent.append((chosen, actions))

    def recv(self) -> EnvResponse:
        """Step all rows that were sent an action and answer for them, in the order of sending.

        Raises:
            NonFiniteError: A simulation became unstable. The environment must be reset then.
            EnvironmentFault: MuJoCo itself failed. The environment must be reset then.
        """
        if not self._sent:
            return self._nothing
        rows, action = self._joined()
        self._drop_open()
        self._started = False  # stays so if a row fails: some rows have stepped then, others not
        is_all = rows.tobytes() == self._all_bytes
        answer = self._stepped(rows, action, is_all=is_all)
        self._started = True
        return answer

    def render(self, row: int = 0) -> Array:
        """One frame of a row, uint8 [height, width, 3].

        Raises:
            RunError: No OpenGL can be had on this machine.
        """
        if not 0 <= row < self.num_envs:
            raise ActionError(f"there are rows 0 to {self.num_envs - 1} to render, got {row}")
        if self._renderer is None:
            self._renderer = FrameRenderer(self._scene.model, self._task)
        return self._renderer.frame(self._simulators.data[row])

    def state_dict(self) -> State:
        """Everything that decides how the rows go on, to the last bit."""
        rows, action = self._joined() if self._sent else (self._all_rows[:0], None)
        return {
            "simulators": self._simulators.state(),
            "arrays": {name: array.copy() for name, array in self._state.arrays.items()},
            "generators": {
                str(row): generator_state(rng) for row, rng in enumerate(self._generators)
            },
            "elapsed": self._elapsed.copy(),
            "started": self._started,
            "sent_rows": rows.copy(),
            "sent_action": None if action is None else action.copy(),
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
        self._drop_open()
        if state["sent_action"] is not None:
            rows = np.array(state["sent_rows"], np.int64)
            self._sent.append((rows, np.array(state["sent_action"])))
            self._open[rows] = True

    def close(self) -> None:
        """End the threads and free the renderer; harmless when repeated."""
        self._simulators.close()
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    def _stepped(self, rows: IntArray, action: FloatArray, *, is_all: bool) -> EnvResponse:
        chosen: list[int] = rows.tolist()
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
        observation = self._observed(after)
        reward, terminated, info = self._task.judge(before, action, after)
        _check_finite((*observation.values(), reward), rows, "step")
        self._state = after if is_all else self._state.replaced(rows, after)
        index = slice(None) if is_all else rows
        self._elapsed[index] += 1
        truncated = self._elapsed[index] >= self._limit
        end = terminated.view(np.uint8) * _TERMINATED + truncated.view(np.uint8) * _TRUNCATED
        return EnvResponse(
            rows=rows.copy(),
            observation=observation,
            first_observation=self._first(rows, observation, end),
            reward=reward,
            terminated=terminated,
            truncated=truncated,
            end=end,
            duration=np.ones(len(rows), np.int64),
            info=info,
        )

    def _first(self, rows: IntArray, observation: Observation, end: Array) -> Observation:
        """What the rows act on next: those whose episode is over start a new one."""
        if not np.count_nonzero(end):
            return observation
        over = np.flatnonzero(end)
        restarted = self._restarted(rows[over].tolist())
        self._state = self._state.replaced(rows[over], restarted)
        self._elapsed[rows[over]] = 0
        first = {key: values.copy() for key, values in observation.items()}
        for key, values in self._observed(restarted).items():
            first[key][over] = values
        _check_finite(first.values(), rows, "reset")
        return first

    def _restarted(self, rows: list[int]) -> MujocoState:
        """Start an episode in some rows, each with its own random stream."""
        for row in rows:
            self._simulators.restart(row, self._task, self._scene, self._generators[row])
        return MujocoState(self._scene, self._simulators.gather(rows))

    def _observed(self, state: MujocoState) -> Observation:
        observation = self._task.observation(state)
        return observation if isinstance(observation, dict) else {_OBSERVATION: observation}

    def _checked_action(self, action: Any, rows: IntArray) -> FloatArray:
        """A copy of the actions as floats, [R, A]."""
        if isinstance(action, dict):
            raise ActionError(f"the action must be one array, got keys {sorted(action)}")
        actions: FloatArray = np.array(action)
        if actions.dtype != np.float32 and actions.dtype != np.float64:
            actions = actions.astype(np.float64)
        if actions.shape != (len(rows), len(self._low)):
            raise ActionError(
                f"the actions of {len(rows)} rows have shape {(len(rows), len(self._low))}, "
                f"got {actions.shape}"
            )
        inside = (actions >= self._low) & (actions <= self._high)  # false for NaN
        if np.count_nonzero(inside) < inside.size:  # several times faster than `all`
            index = int(np.flatnonzero(~inside.all(axis=1))[0])
            raise ActionError(
                f"action {actions[index]} of row {rows[index]} lies outside {self._spaces.action}; "
                "clip it, or let an OutputFilter do so"
            )
        return actions

    def _joined(self) -> tuple[IntArray, FloatArray]:
        """Rows and actions of everything sent."""
        if len(self._sent) == 1:
            return self._sent[0]
        rows, actions = zip(*self._sent, strict=True)
        return np.concatenate(rows), np.concatenate(actions)

    def _drop_open(self) -> None:
        self._sent.clear()
        self._open[:] = False

    def _probe(self) -> EnvResponse:
        """An answer for no rows, with the keys, shapes and dtypes of every answer.

        Proves that what the task's methods return fits.
        """
        name = type(self._task).__name__
        rows = self.num_envs
        action: FloatArray = np.zeros((rows, len(self._low)), np.float32)
        observation = self._observed(self._state)
        reward, terminated, info = self._task.judge(self._state, action, self._state)
        columns = {**observation, **info, "reward": reward, "terminated": terminated}
        for key, values in columns.items():
            shape = np.shape(values)
            scalar = key in ("reward", "terminated")
            if shape[:1] != (rows,) or (scalar and len(shape) != 1):
                expected = f"({rows},)" if scalar else f"({rows}, ...)"
                raise EnvironmentFault(
                    f"{name} gave '{key}' of shape {shape} for {rows} rows, expected {expected}"
                )
        if terminated.dtype != np.bool_:
            raise EnvironmentFault(f"{name}.terminated must be boolean, got {terminated.dtype}")
        return EnvResponse(
            rows=self._all_rows[:0],
            observation=take(observation, self._all_rows[:0]),
            first_observation=take(observation, self._all_rows[:0]),
            reward=reward[:0],
            terminated=terminated[:0],
            truncated=terminated[:0],
            end=np.zeros(0, np.uint8),
            duration=np.zeros(0, np.int64),
            info={key: values[:0] for key, values in info.items()},
        )


def _control_bounds(model: Any) -> tuple[FloatArray, FloatArray]:
    """Lowest and highest control, float32 [A] each; an actuator without limits takes any number."""
    limited = model.actuator_ctrllimited.astype(np.bool_)[:, None]
    bounds = np.where(limited, model.actuator_ctrlrange, (-np.inf, np.inf)).astype(np.float32)
    return bounds[:, 0].copy(), bounds[:, 1].copy()


def _observation_space(observation: Observation) -> gym_spaces.Dict:
    return gym_spaces.Dict(
        {
            key: gym_spaces.Box(-np.inf, np.inf, values.shape[1:], values.dtype.type)
            for key, values in observation.items()
        }
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


def _checked_rows(rows: Any, num_envs: int) -> IntArray:
    """A copy of the row numbers."""
    index: IntArray = np.array(rows)
    if index.ndim != 1 or index.dtype.kind not in "iu":
        raise ActionError(f"rows must be a list of whole numbers, got {rows!r}")
    chosen = index.tolist()
    if chosen and not (min(chosen) >= 0 and max(chosen) < num_envs):
        raise ActionError(f"there are rows 0 to {num_envs - 1}, got {chosen}")
    if len(set(chosen)) < len(chosen):
        raise ActionError(f"each row can be sent one action at a time, got rows {chosen}")
    return index.astype(np.int64, copy=False)


def _check_finite(arrays: Any, rows: IntArray, when: str) -> None:
    for values in arrays:
        finite = np.isfinite(values)
        if np.count_nonzero(finite) < finite.size:
            row = int(rows[np.flatnonzero(~finite.reshape(len(values), -1).all(axis=1))[0]])
            raise NonFiniteError(
                f"the {when} of row {row} gave NaN or infinity as observation or reward; {_STABLER}"
            )
