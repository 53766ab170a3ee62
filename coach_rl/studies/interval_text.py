"""The text of intervals over seeds, and of what stands in their place where there is none."""

from collections.abc import Callable

from coach_rl.studies.statistics import Difference, EqualScores, Estimate

Shown = Callable[[float], str]
"""The text of a value of the metric."""


def with_interval(found: Estimate, shown: Shown) -> str:
    """A number and, in brackets, its interval."""
    return f"{shown(found.value)} ({interval_text(found, shown)})"


def interval_text(found: Estimate, shown: Shown) -> str:
    """The interval of a number, or else the reason why there is none and what is known instead."""
    if found.low is not None and found.high is not None:
        return f"{shown(found.low)} to {shown(found.high)}"
    return found.reason if found.equal is None else _equal_text(found.equal, shown)


def difference_text(found: Difference, shown: Shown) -> str:
    """The interval of a difference, or else the one over episodes or the reason."""
    if found.of_episodes is None:
        return interval_text(found, shown)
    low, high = found.of_episodes
    return f"{shown(low)} to {shown(high)} over episodes"


def _equal_text(equal: EqualScores, shown: Shown) -> str:
    unseen = f"up to {equal.unseen_share:.0%}".replace("%", " %")
    if equal.low is None or equal.high is None:
        return f"all equal; {unseen} of seeds may differ"
    counts = f"{equal.successes:,} of {equal.episodes:,} episodes"
    what = "fail" if equal.successes == equal.episodes else "differ"
    ends = f"{shown(equal.low)} to {shown(equal.high)}"
    return f"{counts}, {ends}; {unseen} of seeds may {what}"
