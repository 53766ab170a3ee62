"""An environment with pictures, named as `picture_environments:Pictures`."""

import os

import gymnasium
import numpy as np
from gymnasium import spaces

END = 2
"""The action that ends the process."""


class Pictures(gymnasium.Env):
    """Shows random pictures and a number; ends after some steps.

    Args:
        size: Pixels in each direction.
    """

    action_space = spaces.Discrete(3)

    def __init__(self, size=64):
        self.observation_space = spaces.Dict(
            {
                "number": spaces.Box(-np.inf, np.inf, (3,), np.float64),
                "picture": spaces.Box(0, 255, (size, size), np.uint8),
            }
        )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.left = int(self.np_random.integers(3, 9))
        return self.observed(), {}

    def step(self, action):
        if action == END:
            os._exit(1)
        self.left -= 1
        return self.observed(), float(action), self.left == 0, False, {}

    def observed(self):
        return {
            "number": self.np_random.normal(size=3),
            "picture": self.np_random.integers(
                0, 256, self.observation_space["picture"].shape, np.uint8
            ),
        }
