"""The clock that a level's agent reads, and what follows for decisions made while it is frozen."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.levels import LevelDescription
from coach_rl.core.records import IntArray, Outcome
from coach_rl.levels.rows import LevelRows


class LevelClock:
    """The stack's clock in the phase of one level.

    A frozen level is in TEST: its agent neither explores nor learns nor remembers.

    Args:
        stack: Phase and counters of the stack; read only.
        level: Whose clock it is.
    """

    def __init__(self, stack: Clock, level: LevelDescription) -> None:
        self.stack = stack
        self._name, self._may_freeze = level.name, level.may_freeze
        self._frozen = Clock(phase=Phase.TEST) if level.frozen else None

    def now(self) -> Clock:
        """Phase and counters for the agent."""
        return self._frozen or self.stack.of_level(self._name)

    def note_decisions(self, rows: LevelRows, decided: IntArray, clock: Clock) -> None:
        """Keep whether the agent is frozen while it decides in some rows.

        Args:
            rows: The level's.
            decided: Where it decides, [R].
            clock: The clock it decides by.
        """
        if self._may_freeze:
            rows.decision_frozen[decided] = clock.phase is Phase.TEST

    def parts(self, rows: LevelRows, outcome: Outcome) -> Iterator[tuple[Outcome, Clock]]:
        """The outcome, in parts with the clock of each: of frozen decisions nothing is learned."""
        clock = self.now()
        if self._may_freeze and clock.learns:
            frozen = rows.decision_frozen[outcome.rows]
            if np.count_nonzero(frozen):
                yield outcome.rows_of(frozen), replace(clock, phase=Phase.TEST)
                outcome = outcome.rows_of(~frozen)
                if not len(outcome.rows):
                    return
        yield outcome, clock
