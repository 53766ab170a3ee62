"""Minari data sets, into a memory."""

from collections.abc import Iterator

from gymnasium import spaces

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import Array
from coach_rl.core.spaces import Space


def read_minari(
    source: str,
    *,
    observation_space: spaces.Dict,  # noqa: ARG001
    action_space: Space,  # noqa: ARG001
) -> Iterator[dict[str, Array]]:
    """Episodes of a data set, as columns [T, ...]."""
    raise ConfigurationError(f"data set '{source}' cannot be read: not supported yet")
