"""Cut a region out of an array."""

from coach_rl.core.errors import SpaceError, require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import NonNegative
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space
from coach_rl.filters.space_requirements import box, box_of
from coach_rl.filters.stages import StatelessInputStage


@parameter_class
class ObservationCropFilter:
    """Keep the elements from `low` up to, but without, `high`, axis by axis."""

    low: tuple[NonNegative[int], ...]
    """First index kept, one per axis of the observation, 0 or more."""
    high: tuple[int | None, ...]
    """First index no longer kept, one per axis; None keeps the axis up to its end."""

    def __post_init__(self) -> None:
        require(
            len(self.low) == len(self.high),
            "ObservationCropFilter.low and high need one entry per axis each, "
            f"got {self.low} and {self.high}",
        )
        require(
            all(
                low >= 0 and (high is None or low < high)
                for low, high in zip(self.low, self.high, strict=True)
            ),
            "ObservationCropFilter.low must be 0 or more and below high on every axis, "
            f"got {self.low} and {self.high}",
        )

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for a Box with as many axes as the crop, and at least as large."""
        source = box_of("ObservationCropFilter", space)
        if len(source.shape) != len(self.low) or any(
            max(low + 1, high or 0) > size
            for low, high, size in zip(self.low, self.high, source.shape, strict=True)
        ):
            raise SpaceError(
                f"ObservationCropFilter from {self.low} to {self.high} doesn't fit into an "
                f"observation of shape {source.shape}; give one entry per axis within the shape"
            )
        kept = tuple(slice(low, high) for low, high in zip(self.low, self.high, strict=True))

        def crop(values: Array) -> Array:
            return values[(slice(None), *kept)].copy()

        return StatelessInputStage(box(source.low[kept], source.high[kept], source.dtype), crop)
