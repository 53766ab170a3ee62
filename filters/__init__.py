"""Filters between an environment and an agent: of observations, rewards and actions.

Imports `coach_rl.core` and nothing else of ours. A preset lists frozen descriptions in an
`InputFilter` and an `OutputFilter`; `build(space)` checks that they fit and returns the chains the
agent runs. Start reading with `stages` (what one built filter is), then `input_filter` and
`output_filter` (the chains), then any single filter.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.filters.action_filters import (
        BoxMasking,
        LinearBoxToBoxMap,
    )
    from coach_rl.filters.input_filter import InputFilter
    from coach_rl.filters.observation_filters import (
        ObservationClippingFilter,
        ObservationNormalizationFilter,
        ObservationReductionBySubPartsNameFilter,
        ObservationStackingFilter,
    )
    from coach_rl.filters.output_filter import OutputFilter
    from coach_rl.filters.reward_filters import (
        RewardClippingFilter,
        RewardNormalizationFilter,
        RewardRescaleFilter,
        RewardReturnScalingFilter,
    )
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
    "ActionStage", "ActionStageParameters", "BoxMasking", "InputFilter", "InputStage",
    "InputStageParameters", "LinearBoxToBoxMap", "ObservationClippingFilter",
    "ObservationNormalizationFilter", "ObservationReductionBySubPartsNameFilter",
    "ObservationStackingFilter", "OutputFilter", "RewardClippingFilter",
    "RewardNormalizationFilter", "RewardRescaleFilter", "RewardReturnScalingFilter",
    "StatelessActionStage", "StatelessInputStage",
]  # fmt: skip
