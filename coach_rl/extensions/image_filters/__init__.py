"""Filters of images, as Coach has them: crop, rescale, luma, bytes.

May import filters and core. All is in `image_filters`; `exported` has them as torch functions.
"""

from typing import TYPE_CHECKING

from coach_rl.core.lazy_names import lazy_names

if TYPE_CHECKING:
    from coach_rl.extensions.image_filters.image_filters import (
        ObservationCropFilter,
        ObservationRescaleSizeByFactorFilter,
        ObservationRescaleToSizeFilter,
        ObservationRGBToYFilter,
        ObservationToUInt8Filter,
    )
else:
    __getattr__, __dir__ = lazy_names(__name__)

__all__ = [
    "ObservationCropFilter", "ObservationRGBToYFilter", "ObservationRescaleSizeByFactorFilter",
    "ObservationRescaleToSizeFilter", "ObservationToUInt8Filter",
]  # fmt: skip
