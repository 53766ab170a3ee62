"""Bonuses for exploration: random network distillation, NovelD, counts within an episode.

May import what agents may. Start with `rnd`, whose networks are those of `distillation`; `visits`
counts what an episode has visited, for `episodic_count` and `noveld`; `terms` joins all to agents.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.curiosity.episodic_count import EpisodicCount
    from coach_rl.extensions.curiosity.noveld import NovelD
    from coach_rl.extensions.curiosity.rnd import RND
    from coach_rl.extensions.curiosity.streams import RewardStream
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = ["RND", "EpisodicCount", "NovelD", "RewardStream"]
