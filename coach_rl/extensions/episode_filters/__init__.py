"""Filters of what an agent stores: whole episodes, by how they end.

May import core. All is in `episode_filter`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.episode_filters.episode_filter import EpisodeFilter
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["EpisodeFilter"]
