"""Bring images to a given size."""

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.spaces import Space
from coach_rl.filters.image_resizing import resizing_stage
from coach_rl.filters.space_requirements import image_of
from coach_rl.filters.stages import StatelessInputStage


@parameter_class
class ObservationRescaleToSizeFilter:
    """Images to `height` x `width`; the aspect ratio may change; bilinear with antialiasing."""

    height: Positive[int]
    """Pixels."""
    width: Positive[int]
    """Pixels."""

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for images, channels last or none."""
        source = image_of("ObservationRescaleToSizeFilter", space)
        return resizing_stage(source, self.height, self.width)
