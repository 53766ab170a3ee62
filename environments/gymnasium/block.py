"""Some rows stepped one after the other in the process they live in."""

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from coach_rl.core.errors import CheckpointError, ConfigurationError, EnvironmentFault, SpaceError
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.state import State
from coach_rl.environments.gymnasium.infos import Info
from coach_rl.environments.gymnasium.layout import Layout, Leaves, layout_of
from coach_rl.environments.gymnasium.recipe import Recipe
from coach_rl.environments.gymnasium.row import Row, Stepped


class BlockAnswer(NamedTuple):
    """What a block's rows answer, in the order asked; all arrays are new."""

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


class RowBlock:
    """A block of rows.

    Args:
        recipe: How each row's environment is made.
        rows: Their numbers, for messages.
    """

    def __init__(self, recipe: Recipe, rows: Sequence[int]) -> None:
        self._level = recipe.level
        self._numbers = list(rows)
        self._rows: list[Row] = []
        try:
            for _ in rows:
                env = recipe.make()
                self._rows.append(Row(env, self._layout_like_first(env)))
        except BaseException:
            self.close()
            raise

    @property
    def layout(self) -> Layout:
        """How the environments' values lie in flat arrays."""
        return self._layout

    def reset(self, seeds: Sequence[int | None]) -> tuple[Observation, list[Info]]:
        """Start every row anew; its observations [R, ...] and infos."""
        observation = self._layout.buffers(len(self._rows))
        infos = []
        for index, seed in enumerate(seeds):
            leaves, info = self._guarded(index, "reset", self._rows[index].reset, seed)
            _write(observation, index, leaves)
            infos.append(info)
        return observation, infos

    def step(self, rows: IntArray, action: Action) -> BlockAnswer:
        """Step some rows and reset those whose episode ended.

        Args:
            rows: [R] positions in this block.
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
        for position, (index, leaves) in enumerate(zip(rows.tolist(), parts, strict=True)):
            row = self._rows[index]
            stepped: Stepped = self._guarded(index, "step", row.step, leaves)
            _write(observation, position, stepped.leaves)
            reward[position] = stepped.reward
            infos.append(stepped.info)
            if stepped.terminated or stepped.truncated:
                terminated[position], truncated[position] = stepped.terminated, stepped.truncated
                restarts.append((position, self._guarded(index, "reset", row.reset)[0]))
        if restarts:
            first = {key: values.copy() for key, values in observation.items()}
            for position, again in restarts:
                _write(first, position, again)
        return BlockAnswer(
            observation,
            observation if first is None else first,
            reward,
            terminated,
            truncated,
            infos,
        )

    def snapshot(self) -> list[State]:
        """Each row's state."""
        return [row.snapshot() for row in self._rows]

    def restore(self, states: Sequence[State]) -> None:
        """Put each row where its state says."""
        for index, state in enumerate(states):
            self._guarded(index, "replay", self._rows[index].restore, state)

    def render(self, index: int) -> Array:
        """A frame of one row, uint8 [height, width, 3]."""
        env = self._rows[index].env
        if env.render_mode != "rgb_array":
            raise ConfigurationError(
                f"'{self._level}' was made with render_mode {env.render_mode!r}; "
                "ask for pictures with kwargs={'render_mode': 'rgb_array'}"
            )
        for sdl in ("SDL_VIDEODRIVER", "SDL_AUDIODRIVER"):  # else pygame looks for a display,
            os.environ.setdefault(sdl, "dummy")  # and complains where there is none
        return np.asarray(self._guarded(index, "render", env.render))

    def close(self) -> None:
        """Close every environment once."""
        rows, self._rows = self._rows, []
        for row in rows:
            row.env.close()

    def _layout_like_first(self, env: Any) -> Layout:
        """The layout of this environment, which must be that of the first."""
        layout = layout_of(env.observation_space, env.action_space, level=self._level)
        if not self._rows:
            self._layout = layout
        elif layout != self._layout:
            raise SpaceError(
                f"two rows of '{self._level}' have different spaces: {layout.spaces} and "
                f"{self._layout.spaces}; every row must have the same"
            )
        return self._layout

    def _guarded(self, index: int, verb: str, call: Callable[..., Any], *arguments: Any) -> Any:
        """The call's result; any error becomes a fault that names the row."""
        try:
            return call(*arguments)
        except CheckpointError as error:
            raise CheckpointError(
                f"row {self._numbers[index]} of '{self._level}': {error}"
            ) from error
        except Exception as error:
            raise EnvironmentFault(
                f"row {self._numbers[index]} of '{self._level}' failed in {verb}: "
                f"{type(error).__name__}: {error}; reset the environment to go on"
            ) from error


def _write(observation: Observation, position: int, leaves: Leaves) -> None:
    for values, leaf in zip(observation.values(), leaves, strict=True):
        values[position] = leaf
