"""Gymnasium environments that tell success in different ways; every other episode succeeds."""

import gymnasium
import numpy as np
from gymnasium import spaces


class EveryOther(gymnasium.Env):
    """Succeeds in every other episode; which of them come first depends on the seed's parity.

    Args:
        tells: `at_success`: the key is in the info of the successful step alone; `always`: in that
            of every step; `never`: in none; `early`: in that of a first step that is not the last.
        key: Under which it is told.
    """

    observation_space = spaces.Box(-1.0, 1.0, (1,), np.float32)
    action_space = spaces.Discrete(2)

    def __init__(self, tells="at_success", key="is_success"):
        self._tells, self._key = tells, key
        self._succeeds = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._succeeds = seed % 2 == 0 if seed is not None else not self._succeeds
        self._step = 0
        return np.zeros(1, np.float32), {}

    def step(self, action):
        self._step += 1
        over = self._step == (2 if self._succeeds else 3)  # ends of different rows fall apart
        success = self._succeeds and self._step == (1 if self._tells == "early" else 2)
        told = success or self._tells == "always"
        info = {self._key: success} if told and self._tells != "never" else {}
        return np.zeros(1, np.float32), 1.0, over, False, info
