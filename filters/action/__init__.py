"""Filters for actions, one per file: frozen descriptions whose `build` returns an `ActionStage`.

Imports `coach_rl.core` and the shared files of `coach_rl.filters`. Every filter here maps both
ways; start with `linear_box_to_box_map`.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.filters.action.attention_discretization import AttentionDiscretization
    from coach_rl.filters.action.box_discretization import BoxDiscretization
    from coach_rl.filters.action.box_masking import BoxMasking
    from coach_rl.filters.action.full_discrete_map import FullDiscreteActionSpaceMap
    from coach_rl.filters.action.linear_box_to_box_map import LinearBoxToBoxMap
    from coach_rl.filters.action.partial_discrete_map import PartialDiscreteActionSpaceMap
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "AttentionDiscretization", "BoxDiscretization", "BoxMasking", "FullDiscreteActionSpaceMap",
    "LinearBoxToBoxMap", "PartialDiscreteActionSpaceMap",
]  # fmt: skip
