"""Checks of the numbers that a filtering agent is shown."""

import numpy as np
from gymnasium.spaces import Dict

from coach_rl.agents.agent_rows import Filtering
from coach_rl.agents.shown_spaces import check_whole
from coach_rl.core.errors import NonFiniteError
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray, Observation

LARGEST = np.finfo(np.float32).max
"""The largest number that agents, which compute in float32, can see."""
REWARD = ""
"""The reward's name among observation keys."""


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
