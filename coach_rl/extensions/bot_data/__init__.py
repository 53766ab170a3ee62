"""Data of BabyAI's levels, acted by the bot of the package minigrid.

May import what graph managers may, `data` and `coach_rl.environments.minigrid`. Start with
`bot_episodes`, which makes data sets; `coach bot_data` writes them.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.bot_data.bot_episodes import BotDataParameters, bot_data
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["BotDataParameters", "bot_data"]
