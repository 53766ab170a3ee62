"""The goal worlds for `gymnasium.make`, one row at a time, for code that knows Gymnasium only."""

from typing import Any

import gymnasium
import numpy as np

from coach_rl.core.errors import require
from coach_rl.core.records import Array, Observation
from coach_rl.environments.goal_worlds.parameters import GOAL_WORLDS, GoalWorldParameters


def register_goal_worlds() -> None:
    """Make `gymnasium.make("coach_rl/GoalPendulum-v0")` and the like known; harmless repeated."""
    for level, task in GOAL_WORLDS.items():
        name = f"coach_rl/{task.__name__}-v0"
        if name not in gymnasium.registry:
            gymnasium.register(
                id=name,
                entry_point=f"{GoalWorldEnv.__module__}:{GoalWorldEnv.__name__}",
                kwargs={"level": level},
                max_episode_steps=task.max_episode_steps,
            )


class GoalWorldEnv(gymnasium.Env[dict[str, Any], Array]):
    """A goal world of one row as a Gymnasium environment; `gymnasium.make` adds the time limit.

    Args:
        level: Which world.
        render_mode: None or rgb_array.
        kwargs: Fields of the world's class.

    Raises:
        ConfigurationError: There is no such world, or a field is unknown or wrong.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 - Gymnasium looks for it on the class

    def __init__(self, level: str, *, render_mode: str | None = None, **kwargs: object) -> None:
        require(
            render_mode in (None, "rgb_array"),
            f"render_mode must be None or 'rgb_array', got {render_mode!r}",
        )
        self._task = GoalWorldParameters(level=level, kwargs=kwargs).task
        # A batch starts an ended episode anew at once, Gymnasium only at a reset.
        endless = GoalWorldParameters(
            level=level, kwargs={**kwargs, "terminate": False}, max_episode_steps=-1, threads=1
        )
        self._batch = endless.build(num_envs=1)
        self.render_mode = render_mode
        self.observation_space = self._batch.spaces.observation
        self.action_space = self._batch.spaces.action
        seconds = self._task.load().opt.timestep * self._task.frame_skip
        self.metadata = {**self.metadata, "render_fps": round(1 / seconds)}

    def reset(
        self, *, seed: int | None = None, options: dict[str, object] | None = None
    ) -> tuple[dict[str, Array], dict[str, object]]:
        """Start an episode; without a seed the random stream continues."""
        super().reset(seed=seed, options=options)
        return _of_the_row(self._batch.reset(None if seed is None else [seed]).observation), {}

    def step(self, action: Array) -> tuple[dict[str, Array], float, bool, bool, dict[str, object]]:
        """One step; terminated at the goal if the world's `terminate` says so."""
        self._batch.send(np.asarray(action)[None])
        answer = self._batch.recv()
        success = bool(answer.info["is_success"][0])
        terminated = success and self._task.terminate
        info: dict[str, object] = {"is_success": success}
        return _of_the_row(answer.observation), float(answer.reward[0]), terminated, False, info

    def compute_reward(self, achieved_goal: Array, desired_goal: Array, info: object) -> Array:
        """See `GoalTask.compute_reward`."""
        return self._task.compute_reward(achieved_goal, desired_goal, info)

    def render(self) -> Array | None:
        """A frame, uint8 [height, width, 3], with render mode rgb_array."""
        return None if self.render_mode is None else self._batch.render()

    def close(self) -> None:
        """End the threads and free the renderer."""
        self._batch.close()


def _of_the_row(observation: Observation) -> dict[str, Array]:
    return {key: values[0] for key, values in observation.items()}
