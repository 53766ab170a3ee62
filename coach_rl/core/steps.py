"""Units of progress: environment steps, environment episodes, training steps.

Amounts of different kinds do not compare and do not add, so a schedule in gradient updates can
never be read as one in environment steps.

    >>> EnvironmentSteps(500) + EnvironmentSteps(1)
    EnvironmentSteps(count=501)
    >>> EnvironmentSteps(5) == EnvironmentEpisodes(5)
    False
"""

from dataclasses import dataclass
from typing import Self

from coach_rl.core.errors import require


@dataclass(frozen=True)
class StepUnit:
    """A non-negative amount of one kind of progress."""

    count: int

    def __post_init__(self) -> None:
        require(
            isinstance(self.count, int) and not isinstance(self.count, bool) and self.count >= 0,
            f"{type(self).__name__}.count must be a whole number of 0 or more, got {self.count!r}",
        )

    def __add__(self, other: Self) -> Self:
        return type(self)(self.count + self._same(other))

    def __sub__(self, other: Self) -> Self:
        return type(self)(self.count - self._same(other))

    def __lt__(self, other: Self) -> bool:
        return self.count < self._same(other)

    def __le__(self, other: Self) -> bool:
        return self.count <= self._same(other)

    def __gt__(self, other: Self) -> bool:
        return self.count > self._same(other)

    def __ge__(self, other: Self) -> bool:
        return self.count >= self._same(other)

    def _same(self, other: object) -> int:
        if type(other) is not type(self):
            raise TypeError(
                f"{type(self).__name__} and {type(other).__name__} are different kinds of progress"
            )
        assert isinstance(other, StepUnit)
        return other.count


@dataclass(frozen=True)
class EnvironmentSteps(StepUnit):
    """Steps of the simulator, summed over all parallel environments."""


@dataclass(frozen=True)
class EnvironmentEpisodes(StepUnit):
    """Finished episodes of the simulator, summed over all parallel environments."""


@dataclass(frozen=True)
class TrainingSteps(StepUnit):
    """Gradient updates, truly counted."""
