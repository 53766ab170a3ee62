"""Reorder the axes of an array."""

import numpy as np

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import Space
from coach_rl.filters.space_requirements import axis_of, box, box_of
from coach_rl.filters.stages import StatelessInputStage


@parameter_class
class ObservationMoveAxisFilter:
    """Move one axis; the others keep their order. From 0 to -1 puts leading channels last."""

    source: int
    """The axis to move, counted without the row axis; negative counts from the end."""
    destination: int
    """Position of the axis in the output."""

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for a Box that has both axes."""
        name = type(self).__name__
        given = box_of(name, space)
        source = axis_of(name, "source", self.source, len(given.shape))
        destination = axis_of(name, "destination", self.destination, len(given.shape))
        low, high = (
            np.moveaxis(bound, source - 1, destination - 1) for bound in (given.low, given.high)
        )
        return StatelessInputStage(
            box(low, high, given.dtype),
            lambda values: np.moveaxis(values, source, destination).copy(order="C"),
        )
