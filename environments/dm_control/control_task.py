"""A task of the DeepMind Control Suite as a Gymnasium environment."""

from collections.abc import Callable, Mapping
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import RunError, in_one_line
from coach_rl.core.records import Array
from coach_rl.core.state import State
from coach_rl.environments.dm_control.physics_state import PhysicsState
from coach_rl.environments.dm_control.pictures import Camera
from coach_rl.environments.dm_control.tasks import load_suite, require_task, short_name
from coach_rl.environments.mujoco.engine import mujoco

Shown = Literal["vector", "parts", "picture"]
"""Observations of a task."""
FILM_SIZE = 480
"""Pixels of a film's picture in both directions."""
SEEDS = 2**32
"""Number of seeds of a `numpy.random.RandomState`."""


class ControlTask(gymnasium.Env[Any, Array]):
    """A task, whose episodes end by their time limit: 1,000 steps, which truncate.

    Each episode has a seed of its own, drawn from `np_random`, for all that the task draws.

    Args:
        task: The task's name, such as `cheetah-run`.
        shows: Observations: `vector`, float32 [O], the parts one after the other; `parts`, a dict
            of them, float32 each; `picture`, uint8 [size, size, 3].
        action_repeat: Steps of the task in one here, whose rewards are summed.
        picture_size: Pixels of a picture in both directions.
        camera: Number of the camera that pictures are from.
        most_steps: Steps here after which an episode is truncated; None: only the task's limit.

    Raises:
        UnknownNameError: There is no such task.
        ConfigurationError: dm_control is missing.
        RunError: Pictures are shown, and no OpenGL works here.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 30}  # noqa: RUF012
    render_mode = "rgb_array"

    def __init__(
        self,
        task: str,
        *,
        shows: Shown,
        action_repeat: int,
        picture_size: int,
        camera: int,
        most_steps: int | None,
    ) -> None:
        require_task(task)
        domain, _, name = short_name(task).partition("-")
        self._env: Any = load_suite().load(domain, name, task_kwargs={"random": 0})
        self.physics_state = PhysicsState(self._env)
        """Saves and restores what steps depend on."""
        self._task = task
        self._repeat = action_repeat
        self._camera = camera
        self._film: Camera | None = None
        """The camera of films; None until the first picture."""
        self._eye: Camera | None = None
        """The camera of observations; None where they are no pictures."""
        self._most_steps = most_steps
        self._steps = 0
        """Steps of the episode."""
        acted = self._env.action_spec()
        bounds = (np.broadcast_to(each, acted.shape) for each in (acted.minimum, acted.maximum))
        low, high = (each.astype(np.float32) for each in bounds)
        self.action_space = spaces.Box(low, high, dtype=np.float32)
        parts: dict[str, spaces.Space[Any]] = {
            key: spaces.Box(-np.inf, np.inf, spec.shape, np.float32)
            for key, spec in self._env.observation_spec().items()
        }
        self.observation_space: spaces.Space[Any]
        self._shown: Callable[[Mapping[str, Any]], Any]
        """The shown observation of that of dm_control."""
        if shows == "picture":
            shape = (picture_size, picture_size, 3)
            self.observation_space = spaces.Box(0, 255, shape, np.uint8)
            self._eye = Camera(
                self._env.physics, number=camera, height=picture_size, width=picture_size
            )
            self._shown = self._as_picture
        elif shows == "parts":
            self.observation_space = spaces.Dict(dict[str, spaces.Space[Any]](parts))
            self._shown = _as_parts
        else:
            size = sum(int(np.prod(part.shape or ())) for part in parts.values())
            self.observation_space = spaces.Box(-np.inf, np.inf, (size,), np.float32)
            self._shown = _as_vector

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        super().reset(seed=seed, options=options)
        self._env.task.random.seed(int(self.np_random.integers(SEEDS)))
        self._steps = 0
        try:
            return self._shown(self._env.reset().observation), {}
        except mujoco.FatalError as error:  # quadruped-escape gives new ground to its renderer
            raise RunError(
                f"the task {self._task} needs OpenGL when an episode starts: "
                f"{in_one_line(error)}; set MUJOCO_GL to egl or osmesa"
            ) from error

    def step(self, action: Array) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        reward = 0.0
        for _ in range(self._repeat):
            _, given, discount, observation = answer = self._env.step(action)
            reward += float(given)
            if answer.last():
                break
        self._steps += 1
        is_over = answer.last()
        is_late = self._steps == self._most_steps
        # A time limit leaves the discount at 1.
        terminated = is_over and discount == 0.0
        return (
            self._shown(observation),
            reward,
            terminated,
            (is_over or is_late) and not terminated,
            {},
        )

    def render(self) -> Array:
        """A picture for films, uint8 [480, 480, 3]."""
        if self._film is None:
            self._film = Camera(
                self._env.physics, number=self._camera, height=FILM_SIZE, width=FILM_SIZE
            )
        return self._film.picture()

    def close(self) -> None:
        for camera in (self._film, self._eye):
            if camera is not None:
                camera.close()
        self._film = None
        self._eye = None

    def _as_picture(self, observation: Mapping[str, Any]) -> Array:  # noqa: ARG002 - as the others
        assert self._eye is not None, "the environment is closed"
        return self._eye.picture()


class SavedControlTask(ControlTask):
    """A task that offers its own state, see `RESTORED`."""

    def save_state(self) -> State:
        """See `OffersState`; `np_random` is saved beside it."""
        return {"task": self.physics_state.save(), "steps": self._steps}

    def restore_state(self, state: State) -> None:
        """Continue where the state was saved."""
        self.physics_state.restore(state["task"])
        self._steps = int(state["steps"])


def _as_vector(observation: Mapping[str, Any]) -> Array:
    """The parts one after the other, float32 [O]."""
    return np.concatenate([np.ravel(part) for part in observation.values()], dtype=np.float32)


def _as_parts(observation: Mapping[str, Any]) -> dict[str, Array]:
    return {key: np.asarray(part, np.float32) for key, part in observation.items()}
