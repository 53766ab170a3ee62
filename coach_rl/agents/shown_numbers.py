"""Checks of the numbers that a filtering agent is shown."""

import warnings

import numpy as np
from gymnasium.spaces import Box, Dict, Discrete, MultiDiscrete

from coach_rl.agents.agent_rows import Filtering
from coach_rl.core.equal_spaces import cast_tolerance, loss_of_cast
from coach_rl.core.errors import CoachWarning, EnvironmentFault, NonFiniteError
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray, Observation
from coach_rl.core.spaces import Space, inside

LARGEST = np.finfo(np.float32).max
"""The largest number that agents, which compute in float32, can see."""
REWARD = ""
"""The reward's name among observation keys."""


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


class ShownNumbers:
    """Check of the numbers that an agent is shown, which names a wrong one and its row.

    Args:
        agent: The agent, whose filters may scale numbers that are too large.
        space: What its level shows.
    """

    def __init__(self, agent: Filtering, space: Dict) -> None:
        self._agent = agent
        self._whole = {
            key: part for key, part in space.spaces.items() if np.dtype(part.dtype).kind in "biu"
        }

    def __call__(
        self, rows: IntArray, observation: Observation, reward: FloatArray | None = None
    ) -> None:
        """Check observations [R, ...] each, and rewards [R].

        Raises:
            NonFiniteError: A value is not finite in float32.
            EnvironmentFault: A value of an integer space lies outside of it.
        """
        shown = observation if reward is None else {**observation, REWARD: reward}
        for key, values in shown.items():
            if values.dtype.kind == "f":
                fits = np.abs(values) <= LARGEST  # false for NaN
                if np.count_nonzero(fits) != fits.size:  # several times faster than `all`
                    self._check_large(key, rows, values, fits)
        for key, space in self._whole.items():
            if key in observation:
                check_whole(key, space, rows, observation[key], agent=self._agent.name)

    def _check_large(self, key: str, rows: IntArray, values: Array, fits: BoolArray) -> None:
        """Raise the error unless numbers that are finite, but too large, pass a filter."""
        filters = self._agent.input_filter
        is_large = bool(np.isfinite(values).all())
        if is_large and (filters.changes_reward if key == REWARD else key in filters.changed_keys):
            return
        what = "a reward" if key == REWARD else f"an observation '{key}'"
        problem = "that float32 makes infinite" if is_large else "that is not finite"
        place = np.argwhere(~(fits if is_large else np.isfinite(values)))[0]
        raise NonFiniteError(
            f"the environment returned {what} {problem} in row {rows[place[0]]}; "
            "check the environment, or the size of the actions"
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
