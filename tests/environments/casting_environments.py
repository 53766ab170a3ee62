"""Environments that show numbers in another dtype than that of their space."""

from typing import ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

HALF = 1e3
"""Half the width of a Box of floats."""


def shown_space(declared, middle=0.0):
    """A Dict with nested keys, whose numbers are of the dtype `declared`."""
    dtype = np.dtype(declared)
    if dtype.kind == "f":
        box = spaces.Box(middle - HALF, middle + HALF, (2,), dtype.type)
    else:
        box = spaces.Box(np.iinfo(dtype).min, np.iinfo(dtype).max, (2,), dtype.type)
    return spaces.Dict({"camera": spaces.Dict({"left": box}), "still": spaces.Discrete(2)})


class Shows(gymnasium.Env):
    """Shows 0 until step `at` of its life, and `number` from then on, in episodes of `length`."""

    action_space = spaces.Discrete(2)

    def __init__(self, given, number, declared, at=0, middle=0.0, length=10**6):
        self.observation_space = shown_space(declared, middle)
        self.given, self.number, self.at, self.length = given, number, at, length
        self.life, self.time, self.middle = -1, 0, middle

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.seen(), {}

    def step(self, action):
        self.time += 1
        seen = self.seen()
        return seen, 0.0, False, self.time >= self.length, {}

    def seen(self):
        self.life += 1
        number = self.number if self.life >= self.at else self.middle
        return {"camera": {"left": np.full(2, number, self.given)}, "still": 0}


class ShowsMany(VectorEnv):
    """The same as a ready vector environment; only its last row shows the number."""

    metadata: ClassVar = {"autoreset_mode": AutoresetMode.DISABLED}

    def __init__(self, num_envs=1, **kwargs):
        self.rows = [Shows(**kwargs) for _ in range(num_envs)]
        for row in self.rows[:-1]:
            row.number = row.middle
        self.num_envs, first = num_envs, self.rows[0]
        self.single_observation_space = first.observation_space
        self.single_action_space = first.action_space
        self.observation_space = batch_space(first.observation_space, num_envs)
        self.action_space = batch_space(first.action_space, num_envs)

    def reset(self, *, seed=None, options=None):
        return self.joined([row.reset()[0] for row in self.rows]), {}

    def step(self, actions):
        answers = [row.step(0) for row in self.rows]
        seen, rewards, terminated, truncated, _ = zip(*answers, strict=True)
        return self.joined(seen), *map(np.array, (rewards, terminated, truncated)), {}

    def joined(self, seen):
        left = np.stack([each["camera"]["left"] for each in seen])
        return {"camera": {"left": left}, "still": np.zeros(self.num_envs, np.int64)}
