"""Keep or discard named elements of a measurement vector."""

from typing import Literal

import numpy as np

from coach_rl.core.errors import ParameterError, SpaceError, UnknownNameError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.spaces import Space
from coach_rl.filters.space_requirements import box, box_of, describe
from coach_rl.filters.stages import StatelessInputStage


@parameter_class
class ObservationReductionBySubPartsNameFilter:
    """Keep only some elements of a vector, chosen by name; they keep their order."""

    names: tuple[str, ...]
    """The name of every element, in order; the elements of one sub-part may share a name."""
    sub_parts: tuple[str, ...]
    """The names chosen."""
    method: Literal["keep", "discard"] = "keep"
    """Treatment of the chosen elements."""

    def __post_init__(self) -> None:
        owner = type(self).__name__
        for name in self.sub_parts:
            if name not in self.names:
                raise UnknownNameError("sub-part", name, set(self.names), f"{owner}.names has them")
        if not self._kept:
            raise ParameterError(
                f"{owner} would leave nothing: {self.method} {self.sub_parts} of {self.names}"
            )

    @property
    def _kept(self) -> tuple[int, ...]:
        keep = self.method == "keep"
        return tuple(
            index for index, name in enumerate(self.names) if (name in self.sub_parts) == keep
        )

    def build(self, space: Space) -> StatelessInputStage:
        """Build the filter for a vector with as many elements as there are names."""
        source = box_of("ObservationReductionBySubPartsNameFilter", space)
        if source.shape != (len(self.names),):
            raise SpaceError(
                "ObservationReductionBySubPartsNameFilter needs a vector of "
                f"{len(self.names)} elements, one per name, got {describe(source)}"
            )
        kept = np.array(self._kept, dtype=np.int64)
        return StatelessInputStage(
            box(source.low[kept], source.high[kept], source.dtype),
            lambda values: values[:, kept],
        )
