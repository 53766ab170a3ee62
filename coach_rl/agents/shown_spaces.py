"""Checks of observations against the spaces that declare them."""

import warnings

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from coach_rl.core.equal_spaces import cast_tolerance, loss_of_cast
from coach_rl.core.errors import CoachWarning, EnvironmentFault
from coach_rl.core.records import Array, IntArray
from coach_rl.core.spaces import Space, inside


def warn_of_rounding(space: Dict, agent: str) -> None:
    """Warn of float64 observations whose bounds lie too far from 0 for float32."""
    for key, part in space.items():
        if isinstance(part, Box) and part.dtype == np.float64:
            with np.errstate(over="ignore", invalid="ignore"):  # of bounds beyond float32
                farthest = np.maximum(np.abs(part.low), np.abs(part.high)).astype(np.float32)
                apart = np.spacing(farthest)
            is_rough = apart / 2 > cast_tolerance(part)
            if is_rough.any():
                warnings.warn(
                    f"agent '{agent}' computes in float32, which rounds the observation '{key}' to "
                    f"multiples of {np.max(apart, where=is_rough, initial=0):g}, more than a "
                    "millionth of its range; subtract "
                    "an origin in the environment, or use ObservationNormalizationFilter",
                    CoachWarning,
                    stacklevel=3,
                )


def check_whole(key: str, space: Space, rows: IntArray, values: Array, *, agent: str) -> None:
    """Raise `EnvironmentFault` naming a value that the integers of its space don't include.

    Those of a Box are what its dtype has: numbers beyond its bounds are kept. Networks encode
    Discrete and MultiDiscrete values as one-hot vectors, which have no place for others.
    """
    place, shown = loss_of_cast(values, np.dtype(space.dtype)) or (None, "")
    if place is None and isinstance(space, Discrete | MultiDiscrete):
        allowed = inside(space, values)
        if not allowed.all():
            place = int(np.flatnonzero(~allowed.reshape(len(rows), -1).all(axis=1))[0])
            shown = str(values[place])
    if place is not None:
        raise EnvironmentFault(
            f"row {rows[place]} showed agent '{agent}' an observation '{key}' outside of its "
            f"space {space}: {shown}; correct the space in the environment, or what it shows"
        )
