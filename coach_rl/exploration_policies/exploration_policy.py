"""The interface between an off-policy agent and an exploration policy."""

import math
from typing import Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from gymnasium import spaces

from coach_rl.core.agents import RowState
from coach_rl.core.box_ranges import require_finite_width
from coach_rl.core.clock import Clock, Schedule
from coach_rl.core.discrete_actions import FORBIDDEN
from coach_rl.core.errors import ParameterError, SpaceError
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.random_actions import allowed_choice
from coach_rl.core.records import Array, BoolArray, FloatArray, IntArray
from coach_rl.core.saved import Saved
from coach_rl.core.spaces import Space
from coach_rl.core.steps import EnvironmentSteps

Rows = TypeVar("Rows", bound=RowState)


_BEGINNING = Clock()
_FAR = 1 << 60
_FAR_END = Clock(
    environment_steps=_FAR,
    episodes=_FAR,
    training_steps=_FAR,
    wall_seconds=_FAR,
    planned=EnvironmentSteps(1),
)


class ExplorationPolicy(Protocol[Rows]):
    """Choice of actions from a network's outputs, exploring or not; one object serves every stack.

    rows_state = policy.new_rows(num_rows=8, seed=0)         # owned and saved by the actor
    action = policy.explore(rows_state, rows, values, starts=starts, clock=clock)
    action = policy.greedy(values)                           # in TEST and for tested decisions

    `values` [R, A] are greedy actions in the agent's Box, or [R, n] the action values of a Discrete
    space, `core.spaces.FORBIDDEN` where an action mask forbids one. Actions are in the agent's
    space, inside its bounds: [R, A] float32, or [R] int64.
    """

    def new_rows(self, num_rows: int, seed: int) -> Rows:
        """Noise streams and processes of the rows; row i draws from streams of (seed, i) alone."""
        ...

    def explore(
        self,
        state: Rows,
        rows: IntArray,
        values: FloatArray,
        *,
        starts: BoolArray,
        clock: Clock,
    ) -> Array:
        """Actions with exploration.

        Args:
            state: What `new_rows` made; only the given rows are advanced.
            rows: [R], no row twice.
            values: The network's outputs, see above.
            starts: [R] the (sub-)episode begins with this decision: processes restart.
            clock: True progress, for schedules.
        """
        ...

    def greedy(self, values: FloatArray) -> Array:
        """Actions without exploration."""
        ...

    def metrics(self, clock: Clock) -> dict[str, float]:
        """Return the metrics to log now, e.g. `exploration/epsilon`."""
        ...


AnyExplorationPolicy: TypeAlias = ExplorationPolicy[Any]
"""An exploration policy, whatever its rows remember: only the policy reads their state."""


class ExplorationPolicyParameters(Protocol):
    """A frozen description of an exploration policy."""

    def build(self, action_space: Space) -> AnyExplorationPolicy:
        """The policy for an agent's action space; SpaceError when it can't serve it."""
        ...


class DiscreteActions:
    """The actions of a Discrete space, chosen by action values [R, n].

    Args:
        space: The agent's action space.
        policy: The exploration policy that acts in it, for the error.

    Raises:
        SpaceError: The space is not Discrete.
    """

    def __init__(self, space: Space, *, policy: str) -> None:
        if not isinstance(space, spaces.Discrete):
            raise SpaceError(
                f"{policy} explores in a Discrete space, not in {space}; for a Box take "
                "GaussianNoise, EpsilonGreedyNoise or another for boxes"
            )
        self.size = 1
        self.count = int(space.n)
        self._start = int(space.start)

    def greedy(self, values: FloatArray) -> IntArray:
        """Actions with the largest value, the first of equals, [R]."""
        return self.numbered(values.argmax(axis=1))

    def numbered(self, choice: IntArray) -> IntArray:
        """The actions of choices [R], counted from 0."""
        return choice.astype(np.int64) + self._start

    def allowed(self, values: FloatArray, actions: IntArray) -> BoolArray:
        """Return whether no mask forbids actions [R], by action values [R, n]."""
        chosen = np.take_along_axis(values, (actions - self._start)[:, None], axis=1)[:, 0]
        return np.asarray(chosen > FORBIDDEN / 2)

    def even(self, uniform: FloatArray, values: FloatArray | None = None) -> IntArray:
        """Actions [R] that are all equally likely, from numbers [R, 1] in [0, 1).

        Those that action values [R, n] show as forbidden are left out.
        """
        if values is not None and values.min(initial=0.0) <= FORBIDDEN / 2:
            return self.numbered(allowed_choice(values > FORBIDDEN / 2, uniform[:, 0]))
        choice = (uniform[:, 0] * self.count).astype(np.int64)
        # The product may round up to n itself.
        return self.numbered(np.minimum(choice, self.count - 1))


class BoxActions:
    """The actions of a flat, bounded Box of floats; arrays [R, A] float32.

    Scales are fractions of half the range of each element, so that noise of scale s is s
    in a Box from -1 to 1, and fits a Box that is unequal or off centre.

    Args:
        space: The agent's action space.
        policy: The exploration policy that acts in it, for the error.

    Raises:
        SpaceError: The space is another one.
    """

    def __init__(self, space: Space, *, policy: str) -> None:
        if not isinstance(space, spaces.Box):
            raise SpaceError(
                f"{policy} explores in a Box, not in {space}; for a Discrete space take Greedy, "
                "EpsilonGreedy or another for Discrete spaces"
            )
        purpose = f"{policy} explores in a flat Box of floats with finite bounds"
        if not np.issubdtype(space.dtype, np.floating) or len(space.shape) != 1:
            raise SpaceError(
                f"{purpose}, got {space}; let an output filter map such a Box to this one"
            )
        require_finite_width(space, purpose)
        self.size = int(space.shape[0])
        self.low: FloatArray = space.low.astype(np.float32)  # [A]
        self.high: FloatArray = space.high.astype(np.float32)  # [A]
        self.half_range: FloatArray = (self.high - self.low) / 2  # [A]

    def greedy(self, values: FloatArray) -> FloatArray:
        """Return the network's output [R, A], clipped to the Box."""
        return self.clipped(values)

    def clipped(self, actions: FloatArray) -> FloatArray:
        """New array of the actions [R, A], inside the Box."""
        inside = np.minimum(np.maximum(actions, self.low), self.high)
        return inside.astype(np.float32, copy=False)

    def allowed(self, values: FloatArray, actions: FloatArray) -> BoolArray:  # noqa: ARG002 - as in Discrete
        """True: nothing is forbidden in a Box, [R]."""
        return np.ones(len(actions), np.bool_)

    def even(self, uniform: FloatArray, values: FloatArray | None = None) -> FloatArray:  # noqa: ARG002 - as in Discrete
        """Uniformly distributed actions of the Box, from numbers [R, A] in [0, 1)."""
        return self.clipped(self.low + uniform * (2 * self.half_range))


def scheduled(schedule: Schedule, clock: Clock, name: str, *, high: float = math.inf) -> float:
    """The schedule's value now; ParameterError, by `name`, when outside [0, high]."""
    value = schedule(clock)
    if not 0 <= value <= high or math.isinf(value):
        limit = "be 0 or more and finite" if high == math.inf else f"lie in [0, {high:g}]"
        raise ParameterError(
            f"{name} must {limit}, got {value} at environment step {clock.environment_steps}"
        )
    return value


def check_ends(schedule: Schedule, name: str, *, high: float = math.inf) -> None:
    """Raise `ParameterError` when the schedule begins or ends outside [0, high]."""
    for clock in (_BEGINNING, _FAR_END):
        scheduled(schedule, clock, name, high=high)


Actions = TypeVar("Actions", bound=DiscreteActions | BoxActions)


class ScheduledPolicy(Generic[Actions]):
    """The shared half of exploration policies with a setting that follows a schedule.

    Args:
        actions: The actions of the agent's space.
        schedule: The values of the setting.
        name: Class and field of the setting, such as `GaussianNoise.scale`.
        metric: Name under which it is logged.
        high: The largest value of the setting; the smallest is 0.
    """

    def __init__(
        self, actions: Actions, schedule: Schedule, name: str, metric: str, high: float = math.inf
    ) -> None:
        self._actions = actions
        self._metric = metric
        self._schedule = schedule
        self._name = name
        self._high = high

    def greedy(self, values: FloatArray) -> Array:
        return self._actions.greedy(values)

    def metrics(self, clock: Clock) -> dict[str, float]:
        return {self._metric: self._now(clock)}

    def _now(self, clock: Clock) -> float:
        """The value of the setting."""
        return scheduled(self._schedule, clock, self._name, high=self._high)


@parameter_class
class Greedy:
    """The network's choice: the largest action value (the first of equals), or the action."""

    def build(self, action_space: Space) -> AnyExplorationPolicy:
        """Build the policy for a Discrete space or a bounded Box of floats."""
        if isinstance(action_space, spaces.Discrete):
            return GreedyPolicy(DiscreteActions(action_space, policy="Greedy"))
        return GreedyPolicy(BoxActions(action_space, policy="Greedy"))


class NothingToRemember(Saved):
    """The row state of a policy that draws nothing."""


class GreedyPolicy:
    """Always the greedy action; an `ExplorationPolicy`."""

    def __init__(self, actions: DiscreteActions | BoxActions) -> None:
        self._actions = actions

    def new_rows(self, num_rows: int, seed: int) -> NothingToRemember:  # noqa: ARG002 - protocol
        return NothingToRemember()

    def explore(
        self,
        state: NothingToRemember,  # noqa: ARG002 - protocol
        rows: IntArray,  # noqa: ARG002 - protocol
        values: FloatArray,
        *,
        starts: BoolArray,  # noqa: ARG002 - protocol
        clock: Clock,  # noqa: ARG002 - protocol
    ) -> Array:
        return self.greedy(values)

    def greedy(self, values: FloatArray) -> Array:
        return self._actions.greedy(values)

    def metrics(self, clock: Clock) -> dict[str, float]:  # noqa: ARG002 - protocol
        return {}
