"""N simulators of one model: stepped by threads, read into arrays with a leading row axis."""

import logging
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from coach_rl.core.errors import EnvironmentFault, UnknownNameError
from coach_rl.core.records import Array, BoolArray, FloatArray
from coach_rl.environments.mujoco.crew import Crew
from coach_rl.environments.mujoco.engine import mujoco
from coach_rl.environments.mujoco.task import MujocoTask, Scene

_FORCES = frozenset({"cacc", "cfrc_ext", "cfrc_int"})
"""`MjData` arrays that `mj_step` leaves alone and `mj_rnePostConstraint` computes."""
_INSTABILITY = slice(mujoco.mjtWarning.mjWARN_BADQPOS, mujoco.mjtWarning.mjWARN_BADCTRL + 1)
_STATE = mujoco.mjtState.mjSTATE_INTEGRATION
_LOGGER = logging.getLogger(__name__)


class Simulators:
    """The `MjData` of N rows.

    Args:
        model: Shared by all rows and never written to.
        num_envs: N.
        frame_skip: Simulator steps per step.
        reads: Names of the `MjData` arrays to gather.
        threads: How many threads step, the calling one included.
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
        self._frame_skip = frame_skip
        self._needs_forces = not _FORCES.isdisjoint(reads)
        # MjData keeps its arrays at the same place for life, so each view is made once.
        self._views = {name: tuple(_view(data, name) for data in self.data) for name in reads}
        self._controls = tuple(data.ctrl for data in self.data)
        self._alarms = tuple(data.warning.number[_INSTABILITY] for data in self.data)
        self._advance = advance
        self._crew = Crew(threads)

    def step(self, controls: FloatArray, rows: Sequence[int]) -> None:
        """Advance some rows by one step of the environment.

        Args:
            controls: [R, A].
            rows: [R], each row once.

        Raises:
            EnvironmentFault: MuJoCo itself failed.
        """
        model, frame_skip, needs_forces = self.model, self._frame_skip, self._needs_forces
        simulators, targets = self.data, self._controls
        step, complete, own_advance = mujoco.mj_step, mujoco.mj_rnePostConstraint, self._advance

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
            self._crew.run(work, len(rows))
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
        """[R] the rows that MuJoCo had to restart, as their state was not finite or huge.

        None where there are none.
        """
        chosen = self._alarms if rows is None else [self._alarms[row] for row in rows]
        alarms = np.concatenate(chosen)
        if not np.count_nonzero(alarms):
            return None
        return np.asarray(alarms.reshape(len(chosen), -1).any(axis=1))

    def restart(self, row: int, task: MujocoTask, scene: Scene, rng: np.random.Generator) -> None:
        """Put one row to the start of an episode."""
        data = self.data[row]
        mujoco.mj_resetData(self.model, data)
        task.reset(scene, data, rng)
        mujoco.mj_forward(self.model, data)

    def state(self) -> FloatArray:
        """All that decides how the rows continue, [N, S]."""
        return np.stack([self.state_of(row) for row in range(len(self.data))])

    def state_of(self, row: int) -> FloatArray:
        """All that decides how one row continues, [S]."""
        state: FloatArray = np.empty(mujoco.mj_stateSize(self.model, _STATE), np.float64)
        mujoco.mj_getState(self.model, self.data[row], state, _STATE)
        return state

    def at(self, state: FloatArray) -> mujoco.MjData:
        """A simulator beside the rows, in a state [S] that `state_of` returned, to look at."""
        data = mujoco.MjData(self.model)
        mujoco.mj_setState(self.model, data, state, _STATE)
        mujoco.mj_forward(self.model, data)
        return data

    def load_state(self, states: FloatArray) -> None:
        """Take over what `state` returned, [N, S]."""
        for data, state in zip(self.data, states, strict=True):
            mujoco.mj_resetData(self.model, data)
            mujoco.mj_setState(self.model, data, state, _STATE)
            mujoco.mj_forward(self.model, data)  # what rendering looks at
            mujoco.mj_setState(self.model, data, state, _STATE)

    def close(self) -> None:
        """End the threads."""
        self._crew.close()


def _view(data: mujoco.MjData, name: str) -> Array:
    if name in _fixed_arrays(data):
        array: Array = getattr(data, name)
        return array
    raise UnknownNameError("MjData array in a task's `reads`", name, _fixed_arrays(data))


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
