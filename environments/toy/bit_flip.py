"""Flip bits until they spell the goal: what plain exploration cannot learn and hindsight can.

After Andrychowicz et al. 2017, "Hindsight Experience Replay", section 3.1: bits and goal are drawn
uniformly, a decision flips one bit, and there is nothing but -1 before the goal. Follows the
Gymnasium goal convention: `observation`, `achieved_goal`, `desired_goal`, `compute_reward`,
`is_success`.
"""

from typing import ClassVar

import numpy as np
from gymnasium import spaces

from coach_rl.core.parameter_classes import parameter_class
from coach_rl.core.ranges import Positive
from coach_rl.core.records import Action, Array, BoolArray, FloatArray, Observation
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.environments.world import WorldEnvironment, WorldState, WorldStep


@parameter_class
class BitFlipParameters:
    """Flip one of n bits at a time; the episode ends at the goal, or after n steps."""

    level: ClassVar[str] = "bit_flip"

    bits: Positive[int] = 8
    """n; without hindsight about 13 can be learnt, with it 40 and more."""

    def build(self, *, num_envs: int) -> WorldEnvironment:
        """A new environment with that many rows."""
        return WorldEnvironment(BitFlip(self), num_envs=num_envs, max_episode_steps=self.bits)


class BitFlip:
    """The rules of the bits."""

    step_numbers = 0

    def __init__(self, parameters: BitFlipParameters) -> None:
        self.start_numbers = 2 * parameters.bits
        bits = spaces.Box(0, 1, (parameters.bits,), np.float32)
        self.spaces = EnvironmentSpaces(
            observation=spaces.Dict(
                {"observation": bits, "achieved_goal": bits, "desired_goal": bits}
            ),
            action=spaces.Discrete(parameters.bits),
        )

    def start(self, uniform: FloatArray) -> WorldState:
        """Random bits and a random goal; they may be equal, as in the paper."""
        bits, goal = np.split((uniform >= 0.5).astype(np.float32), 2, axis=1)
        return {"bits": bits, "goal": goal}

    def observe(self, state: WorldState) -> Observation:
        """Bits, bits, goal: [R, n] each."""
        return {
            "observation": state["bits"].copy(),
            "achieved_goal": state["bits"].copy(),
            "desired_goal": state["goal"].copy(),
        }

    def step(self, state: WorldState, action: Action, uniform: FloatArray) -> WorldStep:  # noqa: ARG002 - no luck involved
        """Flip, and judge by the goal."""
        rows, bits = np.arange(len(state["bits"])), state["bits"].copy()
        bits[rows, np.asarray(action)] = 1 - bits[rows, np.asarray(action)]
        success = _equal(bits, state["goal"])
        return WorldStep(
            {"bits": bits, "goal": state["goal"]},
            self.compute_reward(bits, state["goal"]),
            success,
            {"is_success": success},
        )

    def compute_reward(
        self,
        achieved_goal: Array,
        desired_goal: Array,
        info: object = None,  # noqa: ARG002 - part of the convention
    ) -> FloatArray:
        """0 where all bits are as wanted, else -1, float64 [...].

        Args:
            achieved_goal: [..., n].
            desired_goal: [..., n].
            info: Unused.
        """
        return np.where(_equal(achieved_goal, desired_goal), 0.0, -1.0)


def _equal(here: Array, there: Array) -> BoolArray:
    return np.asarray((here == there).all(axis=-1))
