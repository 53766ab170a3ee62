"""Shrink or enlarge images by a factor."""

from coach_rl.core.errors import SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.spaces import Space
from coach_rl.filters.image_resizing import resizing_stage
from coach_rl.filters.space_requirements import image_of
from coach_rl.filters.stages import StatelessInputStage


@parameter_class
class ObservationRescaleSizeByFactorFilter:
    """Height and width times `factor`, rounded to whole pixels; bilinear with antialiasing."""

    factor: Positive[float]
    """0.5 halves height and width."""

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
