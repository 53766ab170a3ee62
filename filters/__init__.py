"""Filters between an environment and an agent: of observations, rewards and actions.

Imports `coach_rl.core` and nothing else of ours. A preset lists frozen descriptions in an
`InputFilter` and an `OutputFilter`; `build(space)` checks that they fit and returns the chains the
agent runs. Start reading with `stages` (what one built filter is), then `input_filter` and
`output_filter` (the chains), then any single filter.
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
    from coach_rl.filters.input_filter import InputFilter, InputFilterChain
    from coach_rl.filters.observation.clipping import ObservationClippingFilter
    from coach_rl.filters.observation.crop import ObservationCropFilter
    from coach_rl.filters.observation.move_axis import ObservationMoveAxisFilter
    from coach_rl.filters.observation.normalization import ObservationNormalizationFilter
    from coach_rl.filters.observation.reduction_by_sub_parts_name import (
        ObservationReductionBySubPartsNameFilter,
    )
    from coach_rl.filters.observation.rescale_size_by_factor import (
        ObservationRescaleSizeByFactorFilter,
    )
    from coach_rl.filters.observation.rescale_to_size import ObservationRescaleToSizeFilter
    from coach_rl.filters.observation.rgb_to_y import ObservationRGBToYFilter
    from coach_rl.filters.observation.squeeze import ObservationSqueezeFilter
    from coach_rl.filters.observation.stacking import ObservationStackingFilter
    from coach_rl.filters.observation.to_uint8 import ObservationToUInt8Filter
    from coach_rl.filters.output_filter import OutputFilter, OutputFilterChain
    from coach_rl.filters.reward.clipping import RewardClippingFilter
    from coach_rl.filters.reward.ewma_normalization import RewardEwmaNormalizationFilter
    from coach_rl.filters.reward.normalization import RewardNormalizationFilter
    from coach_rl.filters.reward.rescale import RewardRescaleFilter
    from coach_rl.filters.reward.return_scaling import RewardReturnScalingFilter
    from coach_rl.filters.stages import (
        ActionStage,
        ActionStageParameters,
        InputStage,
        InputStageParameters,
        StatelessActionStage,
        StatelessInputStage,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ActionStage", "ActionStageParameters", "AttentionDiscretization", "BoxDiscretization",
    "BoxMasking", "FullDiscreteActionSpaceMap", "InputFilter", "InputFilterChain", "InputStage",
    "InputStageParameters", "LinearBoxToBoxMap", "ObservationClippingFilter",
    "ObservationCropFilter", "ObservationMoveAxisFilter", "ObservationNormalizationFilter",
    "ObservationRGBToYFilter", "ObservationReductionBySubPartsNameFilter",
    "ObservationRescaleSizeByFactorFilter", "ObservationRescaleToSizeFilter",
    "ObservationSqueezeFilter", "ObservationStackingFilter", "ObservationToUInt8Filter",
    "OutputFilter", "OutputFilterChain", "PartialDiscreteActionSpaceMap", "RewardClippingFilter",
    "RewardEwmaNormalizationFilter", "RewardNormalizationFilter", "RewardRescaleFilter",
    "RewardReturnScalingFilter", "StatelessActionStage", "StatelessInputStage",
]  # fmt: skip
