"""Toy worlds with a goal: bits to flip, gates to pass in time, a point mass with a target.

They follow the Gymnasium goal convention: `observation`, `achieved_goal`, `desired_goal`, a
`compute_reward` over any number of rows, and `is_success` in the info.
"""

from typing import ClassVar, Literal

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import require
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces, Space
from coach_rl.environments.goal_reward import GoalReward
from coach_rl.environments.toy.point_mass import motion_space, observed_motion, pushed
from coach_rl.environments.world import WorldEnvironment, WorldState, WorldStep

DAMPING = 0.8
"""Share of the velocity that a step keeps."""
PUSH = 0.03
"""Velocity that a push of 1 adds; the fastest steady motion is 0.03 / (1 - 0.8) = 0.15 a step."""
MAX_SPEED = 0.15
START = -0.9
"""Place at which the mass starts, and to which a closed gate returns it."""
GATES = (-0.3, 0.3)
"""Places of the gates; every start lies below them, every goal above."""
GOALS = (0.6, 0.9)
"""The range of goals."""
THRESHOLD = 0.05
"""Distance at which the goal is reached."""


class GoalRules(GoalReward):
    """The shared half of toy worlds with a goal: the convention's spaces and rewards.

    Args:
        motion: The space of `observation`.
        goal: The space of goals.
        action: The space of actions.
    """

    step_numbers = 0

    def __init__(self, motion: Space, goal: Space, action: Space) -> None:
        parts = {"observation": motion, "achieved_goal": goal, "desired_goal": goal}
        self.spaces = EnvironmentSpaces(observation=spaces.Dict(parts), action=action)

    def distance(self, achieved_goal: Array, desired_goal: Array) -> FloatArray:
        return super().distance(np.asarray(achieved_goal, np.float64), desired_goal)


@parameter_class
class BitFlipParameters:
    """Flip one of n bits at a time; the episode ends at the goal, or after n steps.

    After Andrychowicz et al. 2017, "Hindsight Experience Replay", section 3.1: bits and goal are
    drawn uniformly, and the reward is -1 before the goal. Plain exploration cannot learn it,
    hindsight can.
    """

    level: ClassVar[str] = "bit_flip"

    bits: Positive[int] = 8
    """Number n of bits; without hindsight about 13 can be learned, with it 40 and more."""

    def build(self, *, num_envs: int) -> WorldEnvironment:
        return WorldEnvironment(BitFlip(self), num_envs=num_envs, max_episode_steps=self.bits)


class BitFlip(GoalRules):
    """The rules of the bits."""

    def __init__(self, parameters: BitFlipParameters) -> None:
        self.start_numbers = 2 * parameters.bits
        bits = spaces.Box(0, 1, (parameters.bits,), np.float32)
        super().__init__(bits, bits, spaces.Discrete(parameters.bits))

    def start(self, uniform: FloatArray) -> WorldState:
        # Bits and goal may be equal, as in the paper.
        bits, goal = np.split((uniform >= 0.5).astype(np.float32), 2, axis=1)
        return {"bits": bits, "goal": goal}

    def observe(self, state: WorldState) -> Observation:
        return {
            "observation": state["bits"].copy(),
            "achieved_goal": state["bits"].copy(),
            "desired_goal": state["goal"].copy(),
        }

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - deterministic
        rows = np.arange(len(state["bits"]))
        bits = state["bits"].copy()
        bits[rows, np.asarray(action)] = 1 - bits[rows, np.asarray(action)]
        success = self.reached(bits, state["goal"])
        return WorldStep(
            {"bits": bits, "goal": state["goal"]}, success - 1.0, success, {"is_success": success}
        )

    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        return np.asarray((achieved_goal == desired_goal).all(axis=-1))


@parameter_class
class GatesParameters:
    """A mass on a line passes two gates while they are open; a closed one returns it to its start.

    A small world of the kind for which Gürtler et al. 2021 (arXiv:2112.03100, section 5) made timed
    sub-goals. Observed are place, velocity, and the sine and cosine of each gate's clock, which
    starts at any time. Reaching the goal ends the episode.
    """

    level: ClassVar[str] = "gates"

    period: Positive[int] = 40
    """Steps from one opening of a gate to the next."""
    open_steps: Positive[int] = 6
    """Steps for which a gate stays open."""
    max_episode_steps: Positive[int] = 150
    """Length of an episode."""

    def __post_init__(self) -> None:
        require(
            self.open_steps < self.period,
            f"GatesParameters.open_steps must be less than period ({self.period}), or gates never "
            f"close, got {self.open_steps}",
        )

    def build(self, *, num_envs: int) -> WorldEnvironment:
        return WorldEnvironment(
            Gates(self), num_envs=num_envs, max_episode_steps=self.max_episode_steps
        )


class Gates(GoalRules):
    """The rules of the gates."""

    start_numbers = 1 + len(GATES)

    def __init__(self, parameters: GatesParameters) -> None:
        self._parameters = parameters
        high = np.array([1, MAX_SPEED, *[1] * (2 * len(GATES))], np.float32)
        line = spaces.Box(-1, 1, (1,), np.float32)
        super().__init__(spaces.Box(-high, high, dtype=np.float32), line, line)

    def start(self, uniform: FloatArray) -> WorldState:
        # The mass is at rest; goal and clocks are uniform.
        low, high = GOALS
        rows = len(uniform)
        return {
            "position": np.full((rows, 1), START),
            "velocity": np.zeros((rows, 1)),
            "clock": np.floor(uniform[:, 1:] * self._parameters.period),
            "goal": low + (high - low) * uniform[:, :1],
        }

    def observe(self, state: WorldState) -> Observation:
        """Place, velocity and clocks [R, 6], place [R, 1], goal [R, 1]."""
        turn = 2 * np.pi * state["clock"] / self._parameters.period
        seen = (state["position"], state["velocity"], np.sin(turn), np.cos(turn))
        return {
            "observation": np.concatenate(seen, axis=1).astype(np.float32),
            "achieved_goal": state["position"].astype(np.float32),
            "desired_goal": state["goal"].astype(np.float32),
        }

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - deterministic
        velocity = DAMPING * state["velocity"] + PUSH * np.asarray(action)
        velocity = np.clip(velocity, -MAX_SPEED, MAX_SPEED)
        position = state["position"] + velocity
        returned = self._meets_closed(state, position)[:, None]  # [R, 1]
        at_wall = np.abs(position) >= 1
        state = {
            **state,
            "position": np.where(returned, START, np.clip(position, -1, 1)),
            "velocity": np.where(returned | at_wall, 0.0, velocity),
            "clock": (state["clock"] + 1) % self._parameters.period,
        }
        success = self.reached(state["position"], state["goal"])
        return WorldStep(state, success - 1.0, success, {"is_success": success})

    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        return np.asarray(self.distance(achieved_goal, desired_goal) <= THRESHOLD)

    def _meets_closed(self, state: WorldState, position: FloatArray) -> BoolArray:
        """Return where a mass that moves to these places crosses a closed gate, [R]."""
        gates = np.array(GATES)
        crosses = (state["position"] < gates) != (position < gates)  # [R, gates]
        return np.asarray((crosses & (state["clock"] >= self._parameters.open_steps)).any(axis=1))


@parameter_class
class GoalPointMassParameters:
    """Start anywhere in the square at rest; reach another point of it."""

    level: ClassVar[str] = "goal_point_mass"

    threshold: Positive[float] = 0.1
    """Distance at which the goal is reached; the square's side is 2."""
    reward: Literal["sparse", "dense"] = "sparse"
    """sparse: 0 where the goal is reached, else -1. dense: minus the distance."""
    terminate: bool = False
    """If True, reaching the goal ends the episode; Gymnasium-Robotics continues by default."""
    max_episode_steps: Positive[int] = 50
    """Length of an episode."""

    def build(self, *, num_envs: int) -> WorldEnvironment:
        return WorldEnvironment(
            GoalPointMass(self), num_envs=num_envs, max_episode_steps=self.max_episode_steps
        )


class GoalPointMass(GoalRules):
    """The rules of the point mass with a goal."""

    start_numbers = 4

    def __init__(self, parameters: GoalPointMassParameters) -> None:
        self._parameters = parameters
        self.reward_type = parameters.reward
        square = spaces.Box(-1, 1, (2,), np.float32)
        super().__init__(motion_space(), square, square)

    def start(self, uniform: FloatArray) -> WorldState:
        return {
            "position": 2 * uniform[:, :2] - 1,
            "velocity": np.zeros((len(uniform), 2)),
            "goal": 2 * uniform[:, 2:] - 1,
        }

    def observe(self, state: WorldState) -> Observation:
        return {
            "observation": observed_motion(state),
            "achieved_goal": state["position"].astype(np.float32),
            "desired_goal": state["goal"].astype(np.float32),
        }

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - deterministic
        state = pushed(state, np.asarray(action))
        seen = self.observe(state)
        goals = seen["achieved_goal"], seen["desired_goal"]
        success = self.reached(*goals)
        ends = success & self._parameters.terminate
        return WorldStep(state, self.compute_reward(*goals), ends, {"is_success": success})

    def reached(self, achieved_goal: Array, desired_goal: Array) -> BoolArray:
        return np.asarray(self.distance(achieved_goal, desired_goal) <= self._parameters.threshold)
