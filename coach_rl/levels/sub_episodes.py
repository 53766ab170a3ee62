"""How a level's sub-episodes have gone: what there is to log of them."""

import numpy as np

from coach_rl.core.records import Array, BoolArray, End, FloatArray, IntArray
from coach_rl.core.state import State

_ENDS = {
    "goal": End.GOAL,
    "horizon": End.HORIZON,
    "outer": End.OUTER,
    "terminated": End.TERMINATED,
    "truncated": End.TRUNCATED,
}
_SUMS = ("count", *_ENDS, "distance", "decisions", "return", "decided", "tested", "penalised")


class SubEpisodes:
    """Sums over the sub-episodes that have ended since they were last asked for."""

    def __init__(self) -> None:
        self._sums = dict.fromkeys(_SUMS, 0.0)

    def note_ends(
        self, end: Array, *, distance: FloatArray | None, decisions: IntArray, returns: FloatArray
    ) -> None:
        """Take in the sub-episodes that ended in a tick.

        Args:
            end: Bits of `End`, uint8 [E], none of them 0.
            distance: Left to the goal, [E]; None where there is no goal.
            decisions: How many each took, [E].
            returns: Their rewards added up, [E].
        """
        sums = self._sums
        sums["count"] += len(end)
        for name, bit in _ENDS.items():
            sums[name] += np.count_nonzero(end & np.uint8(bit))
        if distance is not None:
            sums["distance"] += float(distance.sum())
        sums["decisions"] += int(decisions.sum())
        sums["return"] += float(returns.sum())

    def note_decisions(self, tested: BoolArray, missed: BoolArray) -> None:
        """Take in decisions whose outcome is known.

        Args:
            tested: Whether they were tested, [R].
            missed: Whether the level below used up its horizon without reaching the goal, [R].
        """
        sums = self._sums
        sums["decided"] += len(tested)
        sums["tested"] += np.count_nonzero(tested)
        sums["penalised"] += np.count_nonzero(tested & missed)

    def drain(self) -> dict[str, float]:
        """Means over what was noted since the last call, by name; empty if nothing was."""
        sums, count = self._sums, self._sums["count"]
        scalars = {}
        if count:
            scalars["sub_episodes"] = count
            scalars |= {f"{name}_share": sums[name] / count for name in _ENDS}
            for name in ("distance", "decisions", "return"):
                scalars[name] = sums[name] / count
        if sums["decided"]:
            scalars["tested_share"] = sums["tested"] / sums["decided"]
            scalars["penalised_share"] = sums["penalised"] / sums["decided"]
        self._sums = dict.fromkeys(_SUMS, 0.0)
        return scalars

    def state_dict(self) -> State:
        """The sums."""
        return dict(self._sums)

    def load_state_dict(self, state: State) -> None:
        """Go on with the saved sums."""
        self._sums = dict(state)
