"""The progress of an experiment, its phase and counters, and schedules as functions of it.

A schedule is a pure function of the clock and never counts its calls, so it survives a restart and
does not depend on the number of environments or evaluations.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from numbers import Integral
from typing import Annotated, Protocol

from annotated_types import Interval

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.state import State
from coach_rl.core.steps import EnvironmentSteps, RunLength

_COUNTERS = ("environment_steps", "episodes", "training_steps", "skipped_updates", "roll_backs")


class Phase(Enum):
    """The purpose of a tick.

    HEATUP: random actions, stored, nothing trained. TRAIN: exploration on, stored, trained.
    TEST: greedy unless the clock `samples`, nothing stored, nothing changed.
    """

    HEATUP = "heatup"
    TRAIN = "train"
    TEST = "test"


@dataclass(kw_only=True)
class Clock:
    """The phase and the counters of one stack of levels.

    The graph manager is the only writer; levels and agents read. The evaluation stack has a clock
    of its own, whose phase is always TEST.
    """

    phase: Phase = Phase.TRAIN
    environment_steps: int = 0
    """Steps of the simulator, summed over the parallel environments."""
    episodes: int = 0
    """Finished episodes of the simulator."""
    training_steps: int = 0
    """Gradient updates, summed over the levels."""
    skipped_updates: int = 0
    """Gradient updates that were not applied because their numbers were not finite."""
    roll_backs: int = 0
    """Times the run went back to a checkpoint because it had diverged."""
    wall_seconds: float = 0.0
    """Seconds of the run, pauses left out, at the last tick; the graph manager keeps count."""
    planned: RunLength = EnvironmentSteps(0)
    """The length after which training ends; the span of schedules without a length."""
    samples: bool = False
    """If True, agents explore in TEST as they do in TRAIN; still nothing is stored or changed."""
    acts_only: bool = False
    """If True, agents act as in their phase and learn nothing: another process does."""
    levels: Mapping[str, Phase] = field(default_factory=dict)
    """Phases of single levels that are in another one than `phase`, by their names."""
    stages: Mapping[str, int] = field(default_factory=dict)
    """Values that success schedules are at, by `level/setting`; others are at 0."""

    @property
    def learns(self) -> bool:
        """True if data are stored now and change statistics: not in a worker; see `trains`."""
        return self.phase is not Phase.TEST and not self.acts_only

    @property
    def trains(self) -> bool:
        """True in heat-up and training, in whatever process; False in evaluations, and frozen.

        `learns` is False in a worker, whose decisions are stored by the run.
        """
        return self.phase is not Phase.TEST

    def for_choices(self) -> "Clock":
        """This clock for what only chooses: it reads the same in a worker as without."""
        return replace(self, acts_only=False) if self.acts_only else self

    def of_level(self, name: str) -> "Clock":
        """This clock as the agent of a level reads it: in the phase of that level."""
        own = self.levels.get(name)
        return self if own is None else replace(self, phase=own, samples=False)

    def for_evaluation(self) -> "Clock":
        """A clock in TEST with the same counters, on which levels that are frozen now stay so."""
        frozen = {name: phase for name, phase in self.levels.items() if phase is Phase.TEST}
        return replace(self, phase=Phase.TEST, levels=frozen)

    def follow(self, training: "Clock") -> None:
        """Read as `for_evaluation` of another clock does, but for the time."""
        now = training.for_evaluation()
        for name in ("phase", "levels", "stages", *_COUNTERS):
            setattr(self, name, getattr(now, name))

    def state_dict(self) -> State:
        """The phases and what is counted here; the plan belongs to the parameters."""
        stages: State = {"stages": dict(self.stages)} if self.stages else {}
        return {
            "phase": self.phase.value,
            **{name: getattr(self, name) for name in _COUNTERS},
            "levels": {name: phase.value for name, phase in self.levels.items()},
            **stages,
        }

    def load_state_dict(self, state: State) -> None:
        """Take over the phases and the counters of `state_dict`.

        Raises:
            ValueError: A counter is no whole number from 0 to 2**63 - 1.
        """
        self.phase = Phase(state["phase"])
        for name in _COUNTERS:
            setattr(self, name, _count(state, name))
        self.levels = {name: Phase(of) for name, of in state["levels"].items()}
        self.stages = dict(state.get("stages", {}))


def _count(state: State, name: str) -> int:
    count = state[name]
    if isinstance(count, bool) or not isinstance(count, Integral) or not 0 <= int(count) < 2**63:
        raise ValueError(f"'{name}' is no whole number from 0 to 2**63 - 1: {count!r:.40}")
    return int(count)


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
