"""The state of a task of dm_control: physics, the model where tasks change it, and the task.

A task writes arrays of its model when an episode starts, such as the place of a target, and
attributes of its own. Both are saved where they differ from those of the task as it was made.
"""

from typing import Any

import numpy as np

from coach_rl.core.records import Array, FloatArray
from coach_rl.core.state import State
from coach_rl.environments.mujoco.engine import mujoco

_RANDOM = "_random"
"""The attribute of a task that is its `numpy.random.RandomState`."""


class PhysicsState:
    """Saves and restores all that the next steps of a task depend on.

    Args:
        env: A `dm_control.rl.control.Environment` that has just been made.
    """

    def __init__(self, env: Any) -> None:
        self._env = env
        self._model = env.physics.model.ptr
        self._arrays = _arrays(self._model)
        self._made_model = {name: array.copy() for name, array in self._arrays.items()}
        self._made_task = {name: _copied(value) for name, value in vars(env.task).items()}
        self._size = mujoco.mj_stateSize(self._model, _KIND)

    def physics(self) -> FloatArray:
        """All that an integration step reads, float64 [S]."""
        numbers = np.empty(self._size, np.float64)
        mujoco.mj_getState(self._model, self._env.physics.data.ptr, numbers, _KIND)
        return numbers

    def save(self) -> State:
        """A state for `restore` that shares no memory with the task."""
        env = self._env
        name, keys, place, has_normal, normal = env.task.random.get_state()
        made = self._made_model
        return {
            "physics": self.physics(),
            "model": {
                name: array.copy()
                for name, array in self._arrays.items()
                if not np.array_equal(array, made[name], equal_nan=True)
            },
            "task": {
                name: _copied(value)
                for name, value in vars(env.task).items()
                if name != _RANDOM and not _is_equal(value, self._made_task.get(name))
            },
            "random": {
                "name": name,
                "keys": keys.copy(),
                "place": int(place),
                "has_normal": int(has_normal),
                "normal": float(normal),
            },
            "steps": int(env._step_count),  # which dm_control keeps to itself
            "starts": bool(env._reset_next_step),
        }

    def restore(self, state: State) -> None:
        """Continue where a task that was made alike was saved."""
        env = self._env
        for name, array in self._arrays.items():
            array[...] = state["model"].get(name, self._made_model[name])
        attributes = vars(env.task)
        for name, value in {**self._made_task, **state["task"]}.items():
            if name != _RANDOM:
                attributes[name] = _copied(value)
        random = state["random"]
        drawn = (random["name"], random["keys"], random["place"])
        env.task.random.set_state((*drawn, random["has_normal"], random["normal"]))
        data = env.physics.data.ptr
        mujoco.mj_setState(self._model, data, np.asarray(state["physics"], np.float64), _KIND)
        mujoco.mj_step1(self._model, data)  # as each step of dm_control ends
        env._step_count = state["steps"]
        env._reset_next_step = state["starts"]


_KIND = mujoco.mjtState.mjSTATE_INTEGRATION
"""All that an integration step reads, the warm start of its solver too."""


def _arrays(model: mujoco.MjModel) -> dict[str, Array]:
    """The arrays of a model that are not empty and can be written to, by name; not copied."""
    found = {}
    for name in dir(model):
        value = None if name.startswith("_") else getattr(model, name)
        if isinstance(value, np.ndarray) and value.size and value.flags.writeable:
            found[name] = value
    return found


def _copied(value: Any) -> Any:
    return value.copy() if isinstance(value, np.ndarray) else value


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return isinstance(other, np.ndarray) and np.array_equal(one, other, equal_nan=True)
    return one is other or bool(one == other)
