"""Filters for observations, one per file: descriptions whose `build` returns an `InputStage`.

Imports `coach_rl.core` and the shared files of `coach_rl.filters`. Start with `clipping` for a
filter that is only a function, `normalization` for one with statistics, `stacking` for one that
remembers something per row.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
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
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ObservationClippingFilter", "ObservationCropFilter", "ObservationMoveAxisFilter",
    "ObservationNormalizationFilter", "ObservationRGBToYFilter",
    "ObservationReductionBySubPartsNameFilter", "ObservationRescaleSizeByFactorFilter",
    "ObservationRescaleToSizeFilter", "ObservationSqueezeFilter", "ObservationStackingFilter",
    "ObservationToUInt8Filter",
]  # fmt: skip
