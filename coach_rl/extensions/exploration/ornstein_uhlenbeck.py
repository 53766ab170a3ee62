"""Noise on the actions of a Box that drifts: an Ornstein-Uhlenbeck process."""

import math
from dataclasses import dataclass, field
from typing import Annotated

import numpy as np
from annotated_types import Interval

from coach_rl.core.clock import Clock, ConstantSchedule, Schedule
from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import BoolArray, FloatArray, IntArray
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.saved import Saved
from coach_rl.core.spaces import Space
from coach_rl.exploration_policies.exploration_policy import (
    BoxActions,
    ScheduledPolicy,
    check_ends,
)


@parameter_class
class OrnsteinUhlenbeckNoise:
    """x += theta (mean - x) dt + sigma sqrt(dt) N(0, 1), added to the action, then clipped.

    Values of Lillicrap et al. 2016, section 7. x begins at the mean with every (sub-)episode. Far
    from a beginning its standard deviation is sigma / sqrt(2 theta - theta^2 dt), 0.365 by default,
    and it forgets in about 1 / (theta dt) decisions, 667 by default.
    """

    theta: Positive[float] = 0.15
    """Pull towards the mean per unit of time, more than 0."""
    sigma: Schedule = field(default_factory=lambda: ConstantSchedule(value=0.2))
    """Diffusion per square root of a unit of time, in half-ranges of each element."""
    dt: Positive[float] = 0.01
    """Time of a decision. The paper does not name it; 0.01 is that of Coach and OpenAI Baselines. 1
    gives noise that forgets in 7 decisions."""
    mean: Annotated[float, Interval(gt=-math.inf, lt=math.inf)] = 0.0
    """The mean x is pulled towards, in half-ranges of each element; 0 is the action itself."""

    def __post_init__(self) -> None:
        require(
            0 < self.dt <= 1 / self.theta,
            f"OrnsteinUhlenbeckNoise.dt must lie in (0, 1 / theta = {1 / self.theta:g}], "
            f"got {self.dt}",
        )
        check_ends(self.sigma, "OrnsteinUhlenbeckNoise.sigma")

    def build(self, action_space: Space) -> "OrnsteinUhlenbeckPolicy":
        """Build the policy for a flat, bounded Box of floats."""
        actions = BoxActions(action_space, policy="OrnsteinUhlenbeckNoise")
        return OrnsteinUhlenbeckPolicy(self, actions)


@dataclass(frozen=True, kw_only=True)
class OrnsteinUhlenbeckRows(Saved):
    """The state of each row's process."""

    SAVED = ("noise", "level")

    noise: RowNoise
    """A standard normal number for each element and decision."""
    level: FloatArray
    """x, float32 [N, A], in half-ranges of each element."""


class OrnsteinUhlenbeckPolicy(ScheduledPolicy[BoxActions]):
    """Actions [R, A] with drifting noise, clipped; an `ExplorationPolicy`."""

    def __init__(self, params: OrnsteinUhlenbeckNoise, actions: BoxActions) -> None:
        super().__init__(actions, params.sigma, "OrnsteinUhlenbeckNoise.sigma", "exploration/sigma")
        self._params = params

    def new_rows(self, num_rows: int, seed: int) -> OrnsteinUhlenbeckRows:
        """Processes at their mean."""
        size = self._actions.size
        return OrnsteinUhlenbeckRows(
            noise=RowNoise(
                num_rows=num_rows, size=size, kind="normal", seed=seed, name="ornstein_uhlenbeck"
            ),
            level=np.full((num_rows, size), self._params.mean, np.float32),
        )

    def explore(
        self,
        state: OrnsteinUhlenbeckRows,
        rows: IntArray,
        values: FloatArray,
        *,
        starts: BoolArray,
        clock: Clock,
    ) -> FloatArray:
        params = self._params
        level = np.where(starts[:, None], np.float32(params.mean), state.level[rows])
        pull = params.theta * params.dt * (params.mean - level)
        level = level + pull + self._now(clock) * math.sqrt(params.dt) * state.noise.draw(rows)
        state.level[rows] = level
        return self._actions.clipped(values + level * self._actions.half_range)
