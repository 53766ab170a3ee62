"""A level of MiniGrid as a Gymnasium environment: symbols, pictures, counts' keys, success."""

import contextlib
import hashlib
import importlib
import io
from collections.abc import Mapping
from types import ModuleType
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import load_env_creator

from coach_rl.core.errors import ConfigurationError, how_to_install
from coach_rl.core.records import Array
from coach_rl.environments.minigrid.missions import BagOfWords, may_vary
from coach_rl.environments.minigrid.pictures import Tiles
from coach_rl.environments.minigrid.symbols import AGENT, ONE_HOT, PLANES, symbol_of
from coach_rl.environments.minigrid.view import seen_symbols

Shown = Literal["view", "picture", "grid"]
"""Observations of a level: its symbols or a picture of what the agent sees, or the whole grid."""
Given = Literal["position", "state"]
"""Entries of the observation that the agent doesn't see."""
Mission = Literal["words", "hidden"]
"""Treatment of missions."""

SUCCESS = "is_success"
"""Info: True at the end of an episode whose mission was accomplished."""
VIEW = "view"
"""Observation key of symbols of cells."""
PICTURE = "picture"
"""Observation key of pictures."""
DIRECTION = "direction"
"""Observation key of the agent's direction: right, down, left, up."""
MISSION = "mission"
"""Observation key of the words of the mission."""
CARRIED = "carried"
"""Observation key of the object that is carried, where the whole grid is shown."""
POSITION = "position"
"""Observation key of the agent's column and row."""
STATE = "state"
"""Observation key of the digest of everything that is in the grid."""
TILE = 8
"""Pixels of a cell's side in observations, as in MiniGrid's wrappers of pictures."""
FILM_SIDE = 640
"""Most pixels of a side in films."""
FILM_TILE = 32
"""Most pixels of a cell's side in films."""
DIGEST = 8
"""Bytes of a digest."""


class MiniGridWorld(gymnasium.Wrapper[dict[str, Array], np.int64, Any, Any]):
    """One level of MiniGrid or BabyAI.

    A success is an episode that terminates with a reward above zero.

    Args:
        level: Its registered id.
        kwargs: Arguments of the level's class, beside those of the id.
        shows: See `Shown`.
        given: See `Given`.
        mission: See `Mission`; None: missions never vary.
        words: The vocabulary of missions.
        most_steps: Steps after which an episode is truncated; None: those of the level.

    Raises:
        ConfigurationError: MiniGrid is missing, or missions vary and `mission` is None.
    """

    render_mode = "rgb_array"

    def __init__(
        self,
        level: str,
        *,
        kwargs: Mapping[str, object],
        shows: Shown,
        given: tuple[Given, ...],
        mission: Mission | None,
        words: tuple[str, ...],
        most_steps: int | None,
    ) -> None:
        package()
        spec = gymnasium.registry[level]
        assert spec.entry_point is not None
        settings: dict[str, Any] = {**spec.kwargs, **kwargs}
        env: Any = load_env_creator(spec.entry_point)(**settings)  # type: ignore[arg-type] # a name
        super().__init__(env)
        self.metadata = {"render_modes": ["rgb_array"], "render_fps": 10}
        if mission is None and may_vary(env):
            raise ConfigurationError(
                f"the mission of '{level}' differs between episodes, such as '{_example(env)}'; "
                "choose MiniGridParameters.mission: 'words' shows it as a bag of words, 'hidden' "
                "leaves it out"
            )
        self._env: Any = env
        self._wall = importlib.import_module("minigrid.core.world_object").Wall()
        self._tiles = Tiles(TILE)
        self._shows = shows
        self._given = given
        self._bag = BagOfWords(words) if mission == "words" else None
        self._most_steps = most_steps or np.inf
        self._silent = level.startswith("BabyAI")
        self.observation_space: spaces.Space[Any] = self._space(len(words))
        env.gen_obs = self._observation

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Array], dict[str, Any]]:
        if not self._silent:
            return self._env.reset(seed=seed, options=options)  # type: ignore[no-any-return]
        with contextlib.redirect_stdout(io.StringIO()):  # BabyAI prints the grids it has rejected
            return self._env.reset(seed=seed)  # type: ignore[no-any-return]

    def step(self, action: np.int64) -> tuple[dict[str, Array], float, bool, bool, dict[str, Any]]:
        env = self._env
        observation, reward, terminated, truncated, _ = env.step(int(action))
        is_late = truncated or env.step_count >= self._most_steps
        info = {SUCCESS: terminated and reward > 0}
        return observation, float(reward), terminated, is_late and not terminated, info

    def render(self) -> Array:
        """The whole grid, what the agent sees brightened, uint8 [height, width, 3]."""
        env = self._env
        tile = min(FILM_TILE, FILM_SIDE // max(env.width, env.height))
        frame: Array = env.get_frame(tile_size=tile)
        return frame

    def _observation(self) -> dict[str, Array]:
        """The observation, in place of that of `MiniGridEnv.gen_obs`."""
        env = self._env
        shown: dict[str, Any] = {DIRECTION: np.int64(env.agent_dir)}
        size = env.agent_view_size
        if self._shows == "grid":
            shown[VIEW] = self._whole_grid()
            shown[CARRIED] = ONE_HOT[symbol_of(env.carrying)]
        elif self._shows == "view":
            symbols = np.frombuffer(seen_symbols(env, self._wall), np.uint8)
            shown[VIEW] = ONE_HOT[symbols].reshape(size, size, PLANES)
        else:
            shown[PICTURE] = self._tiles.picture(seen_symbols(env, self._wall), size)
        if self._bag is not None:
            shown[MISSION] = self._bag(env.mission)
        if POSITION in self._given:
            shown[POSITION] = np.array(env.agent_pos, np.int64)
        if STATE in self._given:
            shown[STATE] = self._digest()
        return shown

    def _whole_grid(self) -> Array:
        """The planes of all cells, int8 [width, height, 20]; the agent hides what it stands on."""
        env = self._env
        symbols = np.frombuffer(self._grid_symbols(), np.uint8).copy()
        x, y = env.agent_pos
        symbols[y * env.width + x] = AGENT
        planes: Array = ONE_HOT[symbols].reshape(env.height, env.width, PLANES)
        return planes.transpose(1, 0, 2)

    def _digest(self) -> Array:
        """A digest of the grid, the agent, and what it carries, uint8 [8]."""
        env = self._env
        x, y = env.agent_pos
        agent = bytes((x, y, env.agent_dir, symbol_of(env.carrying)))
        digest = hashlib.blake2b(self._grid_symbols() + agent, digest_size=DIGEST).digest()
        return np.frombuffer(digest, np.uint8)

    def _grid_symbols(self) -> bytes:
        """The symbols of all cells, row by row."""
        return bytes([symbol_of(cell) for cell in self._env.grid.grid])

    def _space(self, words: int) -> spaces.Dict:
        """The space of observations."""
        env = self._env
        size = env.agent_view_size
        parts: dict[str, spaces.Space[Any]] = {DIRECTION: spaces.Discrete(4)}
        if self._shows == "view":
            parts[VIEW] = spaces.MultiBinary((size, size, PLANES))
        elif self._shows == "picture":
            shape = (size * TILE, size * TILE, 3)
            parts[PICTURE] = spaces.Box(0, 255, shape, np.uint8)
        else:
            parts[VIEW] = spaces.MultiBinary((env.width, env.height, PLANES))
            parts[CARRIED] = spaces.MultiBinary(PLANES)
        if self._bag is not None:
            parts[MISSION] = spaces.Box(0, np.inf, (words,), np.float32)
        if POSITION in self._given:
            parts[POSITION] = spaces.MultiDiscrete([env.width, env.height])
        if STATE in self._given:
            parts[STATE] = spaces.Box(0, 255, (DIGEST,), np.uint8)
        return spaces.Dict(parts)


def package() -> ModuleType:
    """The package minigrid, which registers its levels once it is imported.

    Raises:
        ConfigurationError: It is missing.
    """
    try:
        return importlib.import_module("minigrid")
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"levels of MiniGrid need {error.name}, which is not installed; "
            f"{how_to_install('minigrid')}"
        ) from error


def _example(env: Any) -> str:
    with contextlib.redirect_stdout(io.StringIO()):
        env.reset(seed=0)
    mission: str = env.mission
    return mission
