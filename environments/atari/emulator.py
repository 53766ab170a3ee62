"""One Atari 2600, whose state can be saved and restored exactly, in another process too."""

import importlib
import re
from types import ModuleType
from typing import Any

import numpy as np

from coach_rl.core.errors import ConfigurationError, UnknownNameError, how_to_install
from coach_rl.core.records import Array
from coach_rl.core.state import State

NOOP = 0
FIRE = 1
"""Codes of actions, the same in all games."""
PRIMING_FRAMES = 25
"""Frames that a new emulator plays before a state is restored into it."""
FOR_TWO_PLAYERS = frozenset({"combat", "joust", "maze_craze", "warlords"})
"""Games that one player cannot play; loading them ends the process."""


class Emulator:
    """An Arcade Learning Environment (Bellemare et al. 2013) with one game.

    It repeats no actions of its own accord: which action each frame has is known outside, and so is
    all that must be saved. A state that is restored continues exactly: parts that the emulator does
    not save depend on the last action, which is why it is repeated before.

    Args:
        game: Name of the game, such as `pong`.

    Raises:
        ConfigurationError: ale-py is missing.
        UnknownNameError: It has no such game.
    """

    def __init__(self, game: str) -> None:
        require_game(game)
        ale_py = _module("ale_py")
        ale_py.ALEInterface.setLoggerMode(ale_py.LoggerMode.Error)
        self._state_class = ale_py.ALEState
        self._ale: Any = ale_py.ALEInterface()
        self._ale.setInt("random_seed", 0)
        self._ale.setFloat("repeat_action_probability", 0.0)
        self._ale.setInt("max_num_frames_per_episode", 0)
        self._ale.loadROM(ale_py.roms.get_rom_path(game))
        height, width = self._ale.getScreenDims()
        self.height = int(height)
        """Pixels of the screen."""
        self.width = int(width)
        """Pixels of the screen."""
        self.minimal_actions = _codes(self._ale.getMinimalActionSet())
        """Codes of the actions that have an effect in this game."""
        self.all_actions = _codes(self._ale.getLegalActionSet())
        """Codes of the 18 actions of the joystick."""
        self.last_action = NOOP
        """The action of the newest frame."""

    @property
    def lives(self) -> int:
        """Number of lives left; 0 in games without lives."""
        return int(self._ale.lives())

    @property
    def is_over(self) -> bool:
        """True if the game has ended."""
        return bool(self._ale.game_over())

    @property
    def memory_size(self) -> int:
        """Bytes of the console's memory."""
        return int(self._ale.getRAMSize())

    def restart(self) -> None:
        """Start a new game; the same one whatever was played before."""
        self._ale.reset_game()
        self.last_action = NOOP

    def play(self, action: int) -> float:
        """The reward of one frame with this action, given by its code."""
        self.last_action = action
        return float(self._ale.act(action))

    def read_grey(self, frame: Array) -> None:
        """Write the screen into `frame`, uint8 [height, width]."""
        self._ale.getScreenGrayscale(frame)

    def colours(self) -> Array:
        """The screen, uint8 [height, width, 3]."""
        return np.asarray(self._ale.getScreenRGB())

    def memory(self) -> Array:
        """The console's memory, uint8 [memory_size]."""
        return np.asarray(self._ale.getRAM())

    def close(self) -> None:
        """Release the emulator, which complains where it is still there when the process ends."""
        self._ale = None

    def save_state(self) -> State:
        """Everything that the next frames depend on."""
        machine = self._ale.cloneState(include_rng=True).serialize()
        return {"machine": np.frombuffer(machine, np.uint8).copy(), "last_action": self.last_action}

    def restore_state(self, state: State) -> None:
        """Continue where the state was saved; until the next frame the screen is another one."""
        self._ale.reset_game()  # a game that has ended plays no frames
        for _ in range(PRIMING_FRAMES):
            self._ale.act(state["last_action"])
        self._ale.restoreState(self._state_class(np.asarray(state["machine"], np.uint8).tobytes()))
        self.last_action = int(state["last_action"])


def require_game(name: str) -> None:
    """Raise `UnknownNameError` for a game that ale-py does not have, or one player cannot play.

    Raises:
        ConfigurationError: ale-py is missing.
    """
    known = sorted({*_module("ale_py.roms").get_all_rom_ids()} - FOR_TWO_PLAYERS)
    if name in FOR_TWO_PLAYERS:
        raise UnknownNameError("Atari game for one player", name, known)
    if name not in known:
        # Gymnasium's `ALE/SpaceInvaders-v5`, `SpaceInvadersNoFrameskip-v4` or a file `pong.bin`
        own = re.sub(r"(-ram)?(NoFrameskip|Deterministic)?(-v\d+)?(\.bin)?$", "", name)
        plain = re.sub(r"[^a-z0-9]", "", own.rpartition("/")[2].lower())
        near = [each for each in known if each.replace("_", "") == plain]
        raise UnknownNameError("Atari game", name, known, near=near)


def _module(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ConfigurationError(
            f"Atari games need {error.name}, which is not installed; {how_to_install('atari')}"
        ) from error


def _codes(actions: Any) -> tuple[int, ...]:
    return tuple(int(action.value) for action in actions)
