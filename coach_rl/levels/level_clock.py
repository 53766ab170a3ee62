"""Phase of a level: the clock its agent reads, and which of its decisions are sub-goal tests."""

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.levels import LevelDescription
from coach_rl.core.records import BoolArray, IntArray, Outcome
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved, SavedAttribute
from coach_rl.levels.rows import LevelRows


class LevelClock:
    """The stack's clock in the phase of one level.

    A frozen level is in TEST: its agent neither explores nor learns nor stores transitions.

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
        """Record whether the agent is frozen while it decides in some rows.

        Args:
            rows: The level's.
            decided: Where it decides, [R].
            clock: The clock it decides by.
        """
        if self._may_freeze:
            rows.decision_frozen[decided] = clock.phase is Phase.TEST

    def parts(
        self, rows: LevelRows, outcome: Outcome, clock: Clock
    ) -> Iterator[tuple[Outcome, Clock]]:
        """The outcome, in parts with the clock of each: of frozen decisions nothing is learned.

        Args:
            rows: The level's.
            outcome: Of some of them.
            clock: The agent's, `now()`.
        """
        if self._may_freeze and clock.learns:
            frozen = rows.decision_frozen[outcome.rows]
            if np.count_nonzero(frozen):
                yield outcome.rows_of(frozen), replace(clock, phase=Phase.TEST)
                outcome = outcome.rows_of(~frozen)
                if not len(outcome.rows):
                    return
        yield outcome, clock


class SubGoalTesting(Saved):
    """Draws which decisions of a level are tested, each row from a random stream of its own.

    Hierarchical Actor-Critic (Levy et al. 2019, arXiv:1712.00948) tests a share of its sub-goals in
    training; a decision that the level above tests is tested as well.

    Args:
        level: Its `testing_rate` is the share.
        clock: The stack's; read only.
        num_envs: N.
        seed: Seed of the streams.
    """

    SAVED = (SavedAttribute("_noise", inline=True),)

    def __init__(self, level: LevelDescription, clock: Clock, *, num_envs: int, seed: int) -> None:
        self.followed: BoolArray | None = None
        """[N] which decisions made elsewhere are tested; None where the level makes its own."""
        self._name, self._rate, self._clock = level.name, level.testing_rate or 0, clock
        self._noise = RowNoise(num_rows=num_envs, size=1, kind="uniform", seed=seed, name="testing")

    @property
    def is_on(self) -> bool:
        """True if the level tests some of its decisions now; random ones it doesn't.

        That a frozen level does makes no difference to it.
        """
        clock = self._clock
        if not self._rate or clock.phase is not Phase.TRAIN:
            return False
        return clock.levels.get(self._name) is not Phase.HEATUP

    def of(self, rows: IntArray, from_above: BoolArray) -> BoolArray:
        """[R] true where the next decision of a row is tested.

        Args:
            rows: [R].
            from_above: [R] the level above tests the sub-episode.
        """
        if self.followed is not None:
            return self.followed[rows]
        if not self.is_on:
            return from_above
        drawn: BoolArray = self._noise.draw(rows)[:, 0] < self._rate
        return from_above | drawn
