"""Filters for rewards, one per file: frozen descriptions whose `build` returns an `InputStage`.

Imports `coach_rl.core` and the shared files of `coach_rl.filters`. Rewards are float64 [R] in a Box
of shape (). Start with `clipping` for a filter that is only a function, `return_scaling` for one
with statistics and memory per row.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.filters.reward.clipping import RewardClippingFilter
    from coach_rl.filters.reward.ewma_normalization import RewardEwmaNormalizationFilter
    from coach_rl.filters.reward.normalization import RewardNormalizationFilter
    from coach_rl.filters.reward.rescale import RewardRescaleFilter
    from coach_rl.filters.reward.return_scaling import RewardReturnScalingFilter
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "RewardClippingFilter", "RewardEwmaNormalizationFilter", "RewardNormalizationFilter",
    "RewardRescaleFilter", "RewardReturnScalingFilter",
]  # fmt: skip
