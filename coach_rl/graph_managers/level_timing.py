"""Changes of single levels while a graph trains: phases of their own, and stages of schedules.

A level is in the run's phase unless a change of its own, or of another, sets one: HEATUP while a
level below it warms up, TEST while it is frozen.
"""

from collections.abc import Sequence

import numpy as np

from coach_rl.core.agents import freeze
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.levels import LevelDescription
from coach_rl.core.saved import Saved
from coach_rl.core.state import State
from coach_rl.core.steps import RunLength
from coach_rl.levels.level_manager import LevelManager


class LevelTiming(Saved):
    """Follows training for all changes of one kind. A subclass lists in `SAVED` what it remembers.

    Args:
        levels: All levels of the graph, top first.
    """

    sets_phases: bool = False
    """True if it gives levels phases of their own."""
    may_change_at_any_tick: bool = False
    """True if it may change the levels at any tick of training."""

    def __init__(self, levels: Sequence[LevelDescription]) -> None:
        self.levels = levels

    @staticmethod
    def check(
        levels: Sequence[LevelDescription], *, training: RunLength, heatup: RunLength
    ) -> None:
        """Raise `ConfigurationError` where changes make no sense together, or in such a run.

        Args:
            levels: Top first.
            training: Length of the run.
            heatup: Length of its heat-up.
        """

    def watch(self, levels: Sequence[LevelManager]) -> None:
        """Prepare the levels that train, once, for what it reads from them."""

    def advance(self, clock: Clock, levels: Sequence[LevelManager]) -> None:
        """Bring the stages on the clock up to date, before a tick."""

    def phases(self, clock: Clock, levels: Sequence[LevelManager]) -> dict[str, Phase]:  # noqa: ARG002
        """The phases of the levels that have one of their own now, by name."""
        return {}

    def unreached(self) -> list[str]:
        """The moments that never came, a line each."""
        return []


class LevelTimings:
    """The timings of all levels' changes, which follow training.

    Args:
        levels: Top first.
    """

    def __init__(self, levels: Sequence[LevelDescription]) -> None:
        self._levels = levels
        self._each: list[LevelTiming] = []
        self.may_change_at_any_tick = False
        """True if the levels may change at any tick of training."""
        for kind in timings_of(levels):
            timing = kind(levels)
            self._each.append(timing)
            self.may_change_at_any_tick |= timing.may_change_at_any_tick

    def watch(self, levels: Sequence[LevelManager]) -> None:
        """Prepare the levels that train."""
        for each in self._each:
            each.watch(levels)

    def update(self, clock: Clock, levels: Sequence[LevelManager]) -> dict[str, Phase]:
        """Bring the phases on the clock up to date; those that have changed, by level.

        Args:
            clock: Phase and counters of training.
            levels: The levels that train; agents are frozen and thawed by it.
        """
        phases: dict[str, Phase] = {}
        for each in self._each:
            each.advance(clock, levels)
        for each in self._each:
            phases |= each.phases(clock, levels)
        if phases == clock.levels:
            return {}
        before = {level.name: clock.of_level(level.name).phase for level in levels}
        clock.levels = phases
        changed = {}
        for level in levels:
            phase = clock.of_level(level.name).phase
            if phase is before[level.name]:
                continue
            changed[level.name] = phase
            if phase is Phase.TEST:
                freeze(level.agent, level.agent_rows, np.arange(level.num_envs), clock)
        return changed

    def metrics(self, clock: Clock) -> dict[str, float]:
        """Return whether each level learns now, 0 or 1 by name; empty where all always do."""
        if not any(each.sets_phases for each in self._each):
            return {}
        return {
            level.name: float(not level.frozen and clock.of_level(level.name).phase is Phase.TRAIN)
            for level in self._levels
        }

    def unreached(self) -> list[str]:
        """The moments that never came, a line each."""
        return [line for each in self._each for line in each.unreached()]

    def state_dict(self) -> State:
        return {type(each).__name__: each.state_dict() for each in self._each}

    def load_state_dict(self, state: State) -> None:
        """Load what they remember; a kind that the saved run did not have begins new."""
        for each in self._each:
            if (own := state.get(type(each).__name__)) is not None:
                each.load_state_dict(own)


def timings_of(levels: Sequence[LevelDescription]) -> list[type[LevelTiming]]:
    """The kinds of timing that the changes of levels need, each once."""
    found: list[type[LevelTiming]] = []
    for level in levels:
        for change in level.changes:
            if change.timing is not None and change.timing not in found:
                found.append(change.timing)
    return found
