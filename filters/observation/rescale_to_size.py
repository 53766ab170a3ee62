"""Bring images to a given size."""

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import Space
from coach_rl.filters.image_resizing import resizing_stage
from coach_rl.filters.space_requirements import image_of
from coach_rl.filters.stages import StatelessInputStage


@parameter_class
class ObservationRescaleToSizeFilter:
    """Any image to `height` x `width`; the aspect ratio may change; bilinear with antialiasing."""

    height: int
    """Pixels."""
    width: int
    """Pixels."""

    def __post_init__(self) -> None:
        require(
            self.height >= 1 and self.width >= 1,
            "ObservationRescaleToSizeFilter.height and width must be 1 or more, "
            f"got {self.height} and {self.width}",
        )

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for images, channels last or none."""
        source = image_of("ObservationRescaleToSizeFilter", space)
        return resizing_stage(source, self.height, self.width)
