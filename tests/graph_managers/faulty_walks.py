"""A walk on a plane that fails by chance, named as `faulty_walks:FaultyWalk`."""

import gymnasium
import numpy as np
from gymnasium import spaces


class FaultyWalk(gymnasium.Env):
    """Four directions or a push; reward for being far out.

    Args:
        chance: Of failing, in every step.
        nan_at: The step of an episode whose reward is NaN; None for none.
        discrete: Whether to take one of four directions.
    """

    observation_space = spaces.Dict({"observation": spaces.Box(-99, 99, (2,), np.float32)})

    def __init__(self, chance=0.0, nan_at=None, discrete=True):
        self.chance, self.nan_at = chance, nan_at
        self.discrete = discrete
        self.action_space = spaces.Discrete(4) if discrete else spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time, self.place = 0, self.np_random.normal(size=2)
        return self.observed(), {}

    def step(self, action):
        self.time += 1
        directions = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]])
        self.place = self.place + (directions[action] if self.discrete else np.asarray(action))
        if self.np_random.random() < self.chance:
            raise RuntimeError("slipped")
        reward = np.nan if self.time == self.nan_at else float(np.abs(self.place).max())
        return self.observed(), reward, False, self.time >= 15, {}

    def observed(self):
        return {"observation": self.place.astype(np.float32)}
