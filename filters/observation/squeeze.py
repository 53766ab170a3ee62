"""Drop axes of length 1."""

from coach_rl.core.errors import SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import Space
from coach_rl.filters.space_requirements import axis_of, box, box_of
from coach_rl.filters.stages import StatelessInputStage


@parameter_class
class ObservationSqueezeFilter:
    """Remove one axis of length 1, or all of them; never the row axis."""

    axis: int | None = None
    """Axis to remove, without the row axis, negative from the end; None: all of length 1."""

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for a Box; `axis` must be of length 1."""
        source = box_of("ObservationSqueezeFilter", space)
        shape = list(source.shape)
        if self.axis is None:
            shape = [size for size in shape if size != 1]
        else:
            axis = axis_of("ObservationSqueezeFilter", "axis", self.axis, len(shape)) - 1
            if shape.pop(axis) != 1:
                raise SpaceError(
                    f"ObservationSqueezeFilter.axis {self.axis} has length {source.shape[axis]} in "
                    f"an observation of shape {source.shape}; only length 1 can be dropped"
                )
        return StatelessInputStage(
            box(source.low.reshape(shape), source.high.reshape(shape), source.dtype),
            lambda values: values.reshape(len(values), *shape).copy(),
        )
