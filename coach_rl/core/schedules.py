"""Values that change over a run, as pure functions of true progress.

A schedule is asked with the clock and never counts how often it was asked, so it survives a restart
and does not depend on the number of environments or evaluations.
"""

from typing import Annotated, Protocol

from annotated_types import Interval

from coach_rl.core.clock import Clock
from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.steps import RunLength


class Schedule(Protocol):
    """A value for every moment of a run."""

    def __call__(self, clock: Clock) -> float:
        """The value at this moment."""
        ...


@parameter_class
class ConstantSchedule:
    """The same value throughout."""

    value: float
    """The value."""

    def __call__(self, clock: Clock) -> float:  # noqa: ARG002 (part of the protocol)
        """The value."""
        return self.value


@parameter_class
class LinearSchedule:
    """A straight line from `start` to `end`, then `end` for ever."""

    start: float
    """Value at the beginning."""
    end: float
    """Value once `over` has passed."""
    over: Positive[RunLength] | None = None
    """Length, in environment steps where it is a plain number; None spans the whole planned
    training, whatever its length and its unit."""

    def __call__(self, clock: Clock) -> float:
        """The value at this moment."""
        length = self.over if self.over is not None else clock.planned
        fraction = length.share(clock)
        return self.start + (self.end - self.start) * fraction


@parameter_class
class ExponentialSchedule:
    """`start` times `decay` to the number of environment steps, never below `end`."""

    start: float
    """Value at the beginning."""
    end: float
    """The floor."""
    decay: Annotated[float, Interval(gt=0, le=1)]
    """Factor per environment step, in (0, 1]; 0.99999 halves the value every 69,315 steps."""

    def __call__(self, clock: Clock) -> float:
        """The value at this moment."""
        return max(self.end, self.start * self.decay**clock.environment_steps)


@parameter_class
class PiecewiseSchedule:
    """Straight lines between points; constant before the first and after the last."""

    points: tuple[tuple[int, float], ...]
    """Pairs (environment steps, value), steps strictly rising."""

    def __post_init__(self) -> None:
        steps = [step for step, _ in self.points]
        require(
            bool(steps) and steps == sorted(set(steps)),
            f"PiecewiseSchedule.points need strictly rising steps, got {steps}",
        )

    def __call__(self, clock: Clock) -> float:
        """The value at this moment."""
        now = clock.environment_steps
        if now <= self.points[0][0]:
            return self.points[0][1]
        for (left, low), (right, high) in zip(self.points, self.points[1:], strict=False):
            if now <= right:
                return low + (high - low) * (now - left) / (right - left)
        return self.points[-1][1]
