"""Asking a schedule for a value that must lie in a range."""

import math

from coach_rl.core.clock import Clock
from coach_rl.core.errors import ParameterError
from coach_rl.core.schedules import Schedule
from coach_rl.core.steps import EnvironmentSteps

_BEGINNING = Clock()
_FAR = 1 << 60
_FAR_END = Clock(
    environment_steps=_FAR,
    episodes=_FAR,
    training_steps=_FAR,
    wall_seconds=_FAR,
    planned=EnvironmentSteps(1),
)


def scheduled(
    schedule: Schedule, clock: Clock, name: str, *, low: float = 0.0, high: float = math.inf
) -> float:
    """The schedule's value now; ParameterError, by `name`, when outside [low, high]."""
    value = schedule(clock)
    if not low <= value <= high or math.isinf(value):
        limit = (
            f"be {low:g} or more and finite" if high == math.inf else f"lie in [{low:g}, {high:g}]"
        )
        raise ParameterError(
            f"{name} must {limit}, got {value} at environment step {clock.environment_steps}"
        )
    return value


def check_ends(schedule: Schedule, name: str, *, low: float = 0.0, high: float = math.inf) -> None:
    """Raise `ParameterError` when the schedule begins or ends outside [low, high]."""
    for clock in (_BEGINNING, _FAR_END):
        scheduled(schedule, clock, name, low=low, high=high)
