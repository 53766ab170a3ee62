"""A point mass whose environment reports infos, and an agent and filters that note signals."""

import gymnasium
import numpy as np
from gymnasium import spaces

from coach_rl.agents.ppo_agent import PPOAgent, PPOAgentParameters
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.filters import InputStage


class Counting(gymnasium.Env):
    """Counts its steps in infos; `bonus` is there at every second step, `place` is a vector."""

    observation_space = spaces.Box(-1, 1, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps = 0
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.steps += 1
        info = {"steps": self.steps, "place": np.zeros(3), "colour": "red", "cost_a": 0.5}
        if self.steps % 2 == 0:
            info["bonus"] = 4.0
        return np.zeros(2, np.float32), 1.0, self.steps == 5, False, info


class CountingRows(gymnasium.vector.SyncVectorEnv):
    """All rows as a vector environment."""

    def __init__(self, num_envs):
        super().__init__([Counting] * num_envs)


class Shift(InputStage):
    """Adds nothing, and notes what passes."""

    def note_to(self, signals):
        self.signals = signals

    def apply(self, values, _memory, _rows, /):
        self.signals.note("passing", values[:, 0])
        return values.copy()


@parameter_class
class ShiftParameters:
    def build(self, space):
        return Shift(space)


@parameter_class
class TellingPPOParameters(PPOAgentParameters):
    def build(self, context):
        return TellingPPO(self, context)


class TellingPPO(PPOAgent):
    """Notes its choices while acting, and something when it has learned."""

    def choose(self, row_state, request, clock):
        info = super().choose(row_state, request, clock)
        self.signals.note("action", info.action)
        return info

    def train(self, clock):
        report = super().train(clock)
        if report is not None:
            self.signals.note("round", 1.0)
        return report
