"""Thinning: the records of a long run that its files leave out.

The files of a run take the first `WHOLE` records of a series, every second of the next
2 * `WHOLE`, every fourth of the 4 * `WHOLE` after those, and so on.
"""

from coach_rl.core.saved import Saved, SavedAttribute

FREQUENT = frozenset({"episode", "train", "progress", "level", "signals", "inspection"})
"""Kinds of records that a long run has many of."""
WHOLE = 5_000
"""Records of a series that files take before they leave out any."""


class Thinning(Saved):
    """Counts the records of each series: those of one kind, level and agent."""

    SAVED = (SavedAttribute("_counts", inline=True, varies=True),)

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def stride(self, series: str) -> tuple[int, bool]:
        """Count the next record of a series.

        Returns:
            Number of records of which files take one, and whether they take this one.
        """
        number = self._counts.get(series, 0)
        self._counts[series] = number + 1
        doublings = (number // WHOLE + 1).bit_length() - 1
        return 1 << doublings, number % (1 << doublings) == 0
