"""The two kinds of action space that exploration policies serve."""

import numpy as np
from gymnasium import spaces

from coach_rl.core.errors import SpaceError
from coach_rl.core.records import FloatArray, IntArray
from coach_rl.core.spaces import Space, require_finite_width


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
                "GaussianNoise, TruncatedNormalNoise, OrnsteinUhlenbeckNoise, EpsilonGreedyNoise "
                "or EpsilonZGreedy"
            )
        self.size = 1
        self.count = int(space.n)
        self._start = int(space.start)

    def greedy(self, values: FloatArray) -> IntArray:
        """Actions with the largest value, the first of equals, [R]."""
        return self.numbered(values.argmax(axis=1))

    def numbered(self, choice: IntArray) -> IntArray:
        """The actions that choices [R], counted from 0, stand for."""
        return choice.astype(np.int64) + self._start

    def even(self, uniform: FloatArray) -> IntArray:
        """Actions [R] that are all equally likely, from numbers [R, 1] in [0, 1)."""
        choice = (uniform[:, 0] * self.count).astype(np.int64)
        # The product may round up to n itself.
        return self.numbered(np.minimum(choice, self.count - 1))


class BoxActions:
    """The actions of a flat, bounded Box of floats; arrays [R, A] float32.

    Scales are fractions of half the range of each element, so that noise of scale s is as large in
    a Box from -1 to 1 as it says, and fits a Box that is unequal or off centre.

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
                "EpsilonGreedy, EpsilonZGreedy, Boltzmann or Categorical"
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

    def even(self, uniform: FloatArray) -> FloatArray:
        """Uniformly distributed actions of the Box, from numbers [R, A] in [0, 1)."""
        return self.clipped(self.low + uniform * (2 * self.half_range))
