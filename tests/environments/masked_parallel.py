"""A PettingZoo parallel environment with action masks."""

import numpy as np
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv


class Turns(ParallelEnv):
    """Two players in turn: the one that waits may do nothing, and what it does has no effect.

    The mask is in the observation, or with `by_info` in the info as `legal`.
    """

    def __init__(self, by_info=False):
        self.metadata, self.by_info = {"name": "turns"}, by_info
        self.possible_agents = ["one", "two"]
        self.np_random = seeding.np_random(None)[0]
        self.sizes = {"one": 3, "two": 4}

    def observation_space(self, agent):
        box = spaces.Box(-9, 9, (2,), np.float32)
        if self.by_info:
            return box
        mask = spaces.Box(0, 1, (self.sizes[agent],), np.int8)
        return spaces.Dict({"observation": box, "action_mask": mask})

    def action_space(self, agent):
        return spaces.Discrete(self.sizes[agent])

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.np_random = seeding.np_random(seed)[0]
        self.agents, self.time = list(self.possible_agents), 0
        self.draw()
        return self.seen(), self.infos()

    def step(self, actions):
        mover = self.possible_agents[self.time % 2]
        if not self.masks[mover][actions[mover]]:
            raise RuntimeError(f"'{mover}' took a forbidden action")
        self.time += 1
        self.draw()
        over = bool(self.np_random.random() < 0.1)
        shown, infos, acted = self.seen(), self.infos(), self.agents
        self.agents = [] if over else acted
        rewards = {name: float(actions[mover] == 1) * (name == mover) for name in acted}
        return shown, rewards, dict.fromkeys(acted, over), dict.fromkeys(acted, False), infos

    def draw(self):
        self.masks = {name: np.zeros(size, np.int8) for name, size in self.sizes.items()}
        mover = self.possible_agents[self.time % 2]
        drawn = self.np_random.random(self.sizes[mover]) < 0.4
        drawn[self.np_random.integers(self.sizes[mover])] = True
        self.masks[mover][:] = drawn

    def seen(self):
        place = {name: self.np_random.uniform(-1, 1, 2).astype(np.float32) for name in self.sizes}
        if self.by_info:
            return place
        return {
            name: {"observation": place[name], "action_mask": self.masks[name]}
            for name in self.sizes
        }

    def infos(self):
        return {name: {"legal": self.masks[name]} if self.by_info else {} for name in self.sizes}
