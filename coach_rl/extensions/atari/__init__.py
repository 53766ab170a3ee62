"""Atari games: the environments are those of `coach_rl.environments.atari`.

May import what levels may. `terminal_info` makes lost lives terminal for an agent's learning;
presets are `Atari_PPO`, `Atari_DQN` and `Atari_Rainbow`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.atari.terminal_info import TerminalInfo
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["TerminalInfo"]
