"""N simulators of one model: stepped by threads, read into arrays with a leading row axis."""

import logging
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from coach_rl.core.errors import EnvironmentFault, UnknownNameError
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.mujoco.task import MujocoTask, Scene

_FORCES = frozenset({"cacc", "cfrc_ext", "cfrc_int"})
"""`MjData` arrays that `mj_step` leaves alone and `mj_rnePostConstraint` computes."""
_INSTABILITY = slice(mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADCTRL + 1)
_STATE = mujoco.mjtState.mjSTATE_INTEGRATION
_LOGGER = logging.getLogger(__name__)

Work = Callable[[Iterator[int]], None]
"""A function that processes every row that it can claim from the iterator."""


class Simulators:
    """The `MjData` of N rows.

    Args:
        model: Shared by all rows and never written to.
        num_envs: N.
        frame_skip: Simulator steps per step.
        reads: Names of the `MjData` arrays to gather.
        threads: Number of threads that step, the calling one included.
        advance: Simulates a step of a row, given the row and its controls [A]; None:
            `MujocoTask.advance` as it is, without a call of it.
    """

    def __init__(
        self,
        model: mujoco.MjModel,
        *,
        num_envs: int,
        frame_skip: int,
        reads: Sequence[str],
        threads: int,
        advance: Callable[[int, FloatArray], None] | None = None,
    ) -> None:
        _log_warnings()
        self.model = model
        self.data = [mujoco.MjData(model) for _ in range(num_envs)]
        self.state_size: int = mujoco.mj_stateSize(model, _STATE)
        """S, the size of a row's full state."""
        self._frame_skip = frame_skip
        self._needs_forces = not _FORCES.isdisjoint(reads)
        _require_fixed(self.data[0], reads)
        # These arrays never move, so each view is made once.
        self._views = {name: tuple(getattr(data, name) for data in self.data) for name in reads}
        self._controls = tuple(data.ctrl for data in self.data)
        self._instabilities = tuple(data.warning.number[_INSTABILITY] for data in self.data)
        self._advance = advance
        self._pool = ThreadPool(threads)

    def step(self, controls: FloatArray, rows: Sequence[int]) -> None:
        """Advance some rows by one step of the environment.

        Args:
            controls: [R, A].
            rows: [R], each row once.

        Raises:
            EnvironmentFault: MuJoCo itself failed.
        """
        model = self.model
        frame_skip = self._frame_skip
        needs_forces = self._needs_forces
        simulators = self.data
        targets = self._controls
        step = mujoco.mj_step
        complete = mujoco.mj_rnePostConstraint
        own_advance = self._advance

        def work(claims: Iterator[int]) -> None:
            for index in claims:
                row = rows[index]
                if own_advance is None:
                    targets[row][:] = controls[index]
                    step(model, simulators[row], frame_skip)
                else:
                    own_advance(row, controls[index])
                if needs_forces:
                    complete(model, simulators[row])

        try:
            self._pool.run(work, len(rows))
        except mujoco.FatalError as error:
            raise EnvironmentFault(f"MuJoCo stopped with '{error}'") from error

    def gather(self, rows: Sequence[int] | None = None) -> dict[str, Array]:
        """New arrays [R, ...] of what the task reads; None stands for all rows."""
        gathered = {}
        for name, views in self._views.items():
            chosen = views if rows is None else [views[row] for row in rows]
            gathered[name] = np.concatenate(chosen).reshape(len(chosen), *views[0].shape)
        return gathered

    def unstable(self, rows: Sequence[int] | None = None) -> BoolArray | None:
        """[R] the rows that MuJoCo reset because their state was not finite or huge.

        None if there are none.
        """
        chosen = self._instabilities if rows is None else [self._instabilities[row] for row in rows]
        counters = np.concatenate(chosen)
        if not np.count_nonzero(counters):
            return None
        return np.asarray(counters.reshape(len(chosen), -1).any(axis=1))

    def restart(self, row: int, task: MujocoTask, scene: Scene, rng: np.random.Generator) -> None:
        """Put one row to the start of an episode."""
        data = self.data[row]
        mujoco.mj_resetData(self.model, data)
        task.reset(scene, data, rng)
        mujoco.mj_forward(self.model, data)

    def state(self) -> FloatArray:
        """The full states of all rows, [N, S]."""
        return np.stack([self.state_of(row) for row in range(len(self.data))])

    def state_of(self, row: int) -> FloatArray:
        """The full state of one row, [S]."""
        state: FloatArray = np.empty(self.state_size, np.float64)
        mujoco.mj_getState(self.model, self.data[row], state, _STATE)
        return state

    def at(self, state: FloatArray) -> mujoco.MjData:
        """A separate simulator in a state [S] from `state_of`, for rendering."""
        data = mujoco.MjData(self.model)
        mujoco.mj_setState(self.model, data, state, _STATE)
        mujoco.mj_forward(self.model, data)
        return data

    def load_state(self, states: FloatArray) -> None:
        """Load states from `state`, [N, S]."""
        for data, state in zip(self.data, states, strict=True):
            mujoco.mj_resetData(self.model, data)
            mujoco.mj_setState(self.model, data, state, _STATE)
            mujoco.mj_forward(self.model, data)  # for rendering
            mujoco.mj_setState(self.model, data, state, _STATE)

    def close(self) -> None:
        self._pool.close()


class ThreadPool:
    """The calling thread and `threads - 1` helpers.

    Rows are claimed one at a time, so a helper that the machine delays does not delay the others.
    The order of rows is not defined; work on one row must not touch another.
    """

    def __init__(self, threads: int) -> None:
        self._helpers = [_Helper() for _ in range(threads - 1)]
        # Helpers hold no reference to the pool, so one that was not closed still ends its threads.
        self._closer = weakref.finalize(self, _end_all, self._helpers)

    def run(self, work: Work, count: int) -> None:
        """Run rows 0 to count - 1, and wait until all are done.

        Raises:
            Exception: The first error of `work`; other rows may have been left out then.
        """
        claims = iter(range(count))  # `next` on it is atomic
        busy = self._helpers[: count - 1] if count > 1 else []
        for helper in busy:
            helper.begin(work, claims)
        try:
            work(claims)
        finally:
            errors = [helper.finish() for helper in busy]
        for error in errors:
            if error is not None:
                raise error

    def close(self) -> None:
        """End the helpers; may be repeated."""
        self._closer()


class _Helper:
    """One thread, asleep between `finish` and `begin`."""

    def __init__(self) -> None:
        self._start, self._done = threading.Lock(), threading.Lock()
        self._start.acquire()
        self._done.acquire()
        self._job: tuple[Work, Iterator[int]] | None = None
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._serve, name="mujoco-rows", daemon=True)
        self._thread.start()

    def begin(self, work: Work, claims: Iterator[int]) -> None:
        self._job = (work, claims)
        self._start.release()

    def finish(self) -> BaseException | None:
        self._done.acquire()
        error = self._error
        self._error = None
        return error

    def end(self) -> None:
        self._start.release()
        self._thread.join()

    def _serve(self) -> None:
        while True:
            self._start.acquire()
            if self._job is None:
                return
            work, claims = self._job
            self._job = None
            try:
                work(claims)
            except BaseException as error:  # handed to the caller
                self._error = error
            del work, claims
            self._done.release()


def _end_all(helpers: list[_Helper]) -> None:
    for helper in helpers:
        helper.end()
    helpers.clear()


def _require_fixed(data: mujoco.MjData, names: Sequence[str]) -> None:
    """Raise `UnknownNameError` unless all are names of `_fixed_arrays`."""
    known = _fixed_arrays(data)
    for name in names:
        if name not in known:
            raise UnknownNameError("MjData array in a task's `reads`", name, known)


def _fixed_arrays(data: mujoco.MjData) -> list[str]:
    """Names of the float arrays whose size and place never change."""
    return [
        name
        for name in dir(data)
        if not name.startswith(("_", "efc_", "iefc_", "ifrc_", "iacc"))
        and isinstance(getattr(data, name), np.ndarray)
        and getattr(data, name).dtype == np.float64
    ]


def _log_warnings() -> None:
    """Send MuJoCo's warnings to logging, not to a file in the working directory.

    The handler is the whole process's; one that is there already stays.
    """
    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(_LOGGER.warning)
