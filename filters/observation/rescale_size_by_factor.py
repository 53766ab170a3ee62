"""Shrink or enlarge images by a factor."""

from coach_rl.core.errors import SpaceError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import Space
from coach_rl.filters.image_resizing import resizing_stage
from coach_rl.filters.space_requirements import image_of
from coach_rl.filters.stages import StatelessInputStage


@parameter_class
class ObservationRescaleSizeByFactorFilter:
    """Height and width times `factor`, rounded to whole pixels; bilinear with antialiasing."""

    factor: float
    """0.5 halves height and width."""

    def __post_init__(self) -> None:
        require(
            self.factor > 0,
            f"ObservationRescaleSizeByFactorFilter.factor must be above 0, got {self.factor}",
        )

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for images, channels last or none."""
        source = image_of("ObservationRescaleSizeByFactorFilter", space)
        height, width = (round(size * self.factor) for size in source.shape[:2])
        if not height or not width:
            raise SpaceError(
                f"ObservationRescaleSizeByFactorFilter.factor {self.factor} leaves nothing of an "
                f"image of {source.shape[0]} x {source.shape[1]} pixels; use a larger factor"
            )
        return resizing_stage(source, height, width)
