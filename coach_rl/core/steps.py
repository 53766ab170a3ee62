"""Units of progress: environment steps, environment episodes, training steps, hours.

Amounts of different kinds do not compare and do not add, so a schedule in gradient updates can
never be read as one in environment steps.

    >>> EnvironmentSteps(500) + EnvironmentSteps(1)
    EnvironmentSteps(count=501)
    >>> EnvironmentSteps(5) == EnvironmentEpisodes(5)
    False
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from numbers import Integral, Real
from typing import ClassVar, Protocol, Self

from coach_rl.core.errors import require


class Counters(Protocol):
    """Progress of a run in every unit: a clock, or a log record."""

    @property
    def environment_steps(self) -> int:
        """Steps of the simulator, summed over the parallel environments."""
        ...

    @property
    def episodes(self) -> int:
        """Finished training episodes."""
        ...

    @property
    def training_steps(self) -> int:
        """Gradient updates, summed over the levels."""
        ...

    @property
    def wall_seconds(self) -> float:
        """Seconds of the run, pauses left out."""
        ...


@dataclass(frozen=True)
class StepUnit(ABC):
    """A non-negative amount of one kind of progress."""

    count: float
    noun: ClassVar[str]
    """The unit's name, in the plural."""

    def __post_init__(self) -> None:
        count: object = self.count  # 1e6 and numpy's numbers as well
        is_whole = isinstance(count, Integral) or (
            isinstance(count, Real) and float(count).is_integer()
        )
        require(
            is_whole and not isinstance(self.count, bool) and self.count >= 0,
            f"{type(self).__name__}.count must be a whole number of 0 or more, got {self.count!r}",
        )
        object.__setattr__(self, "count", int(self.count))

    @classmethod
    @abstractmethod
    def counted(cls, counters: Counters) -> float:
        """Return how much of this kind a run has behind it."""

    def is_reached(self, counters: Counters) -> bool:
        """Return whether a run has come this far."""
        return self.counted(counters) >= self.count

    def share(self, counters: Counters) -> float:
        """The share of this length that a run has behind it, from 0 to 1; 0 of no length."""
        return min(1.0, self.counted(counters) / self.count) if self.count else 0.0

    def __str__(self) -> str:
        return f"{self.count:,} {self.noun}"

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

    def _same(self, other: object) -> float:
        if type(other) is not type(self):
            raise TypeError(
                f"{type(self).__name__} and {type(other).__name__} are different kinds of progress"
            )
        assert isinstance(other, StepUnit)
        return other.count


def require_unit(length: object, unit: type[object], name: str) -> None:
    """Raise `ParameterError` where a length is a plain number, or of another unit."""
    example = EnvironmentSteps if unit is StepUnit else unit
    require(
        isinstance(length, unit),
        f"{name} must be {unit.__name__}, got {length!r}; write {example.__name__}(3000)",
    )


@dataclass(frozen=True)
class EnvironmentSteps(StepUnit):
    """Steps of the simulator, summed over all parallel environments."""

    count: int
    noun: ClassVar[str] = "environment steps"

    @classmethod
    def counted(cls, counters: Counters) -> int:
        """Environment steps so far, heat-up included, evaluations not."""
        return counters.environment_steps


@dataclass(frozen=True)
class EnvironmentEpisodes(StepUnit):
    """Finished episodes of the simulator, summed over all parallel environments."""

    count: int
    noun: ClassVar[str] = "episodes"

    @classmethod
    def counted(cls, counters: Counters) -> int:
        """Episodes so far, those of heat-up included, evaluations not."""
        return counters.episodes


@dataclass(frozen=True)
class TrainingSteps(StepUnit):
    """Gradient updates, truly counted, summed over the levels."""

    count: int
    noun: ClassVar[str] = "gradient updates"

    @classmethod
    def counted(cls, counters: Counters) -> int:
        """Gradient updates so far."""
        return counters.training_steps


@dataclass(frozen=True)
class Hours(StepUnit):
    """Hours of the run's own time, evaluations included, pauses between its parts not."""

    noun: ClassVar[str] = "hours"

    def __post_init__(self) -> None:
        count: object = self.count
        is_number = isinstance(count, Real) and not isinstance(count, bool)
        require(
            is_number and 0 <= self.count < float("inf"),
            f"Hours.count must be a finite number of 0 or more, got {self.count!r}",
        )
        number = int if isinstance(count, Integral) else float
        object.__setattr__(self, "count", number(self.count))

    def __str__(self) -> str:
        return f"{self.count:g} {self.noun}"

    @classmethod
    def counted(cls, counters: Counters) -> float:
        """Hours so far."""
        return counters.wall_seconds / 3600


RunLength = EnvironmentSteps | EnvironmentEpisodes | TrainingSteps | Hours
"""A length of a run, in any unit."""
