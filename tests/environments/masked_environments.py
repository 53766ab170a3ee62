"""Gymnasium environments with action masks, which fail where a forbidden action comes."""

import gymnasium
import numpy as np
from gymnasium import spaces


class Doors(gymnasium.Env):
    """Doors of several walls, of which each step opens some by chance; the episode ends by chance.

    Its mask is in the info, as `action_mask`, in `action_masks()`, and as `doors` in no other
    place. After a terminated step the info has none.
    """

    def __init__(self, sizes=(4,), start=0, final_mask=False):
        self.sizes, self.start, self.final_mask = tuple(sizes), start, final_mask
        self.observation_space = spaces.Box(-9, 9, (2,), np.float32)
        one, counts = len(self.sizes) == 1, np.array(self.sizes)
        self.action_space = (
            spaces.Discrete(int(counts[0]), start=start)
            if one
            else spaces.MultiDiscrete(counts, start=np.full(len(counts), start))
        )

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.open_some()
        return self.seen(), {"action_mask": self.given()}

    def step(self, action):
        chosen = np.atleast_1d(action) - self.start
        for door, mask in zip(chosen, self.masks, strict=True):
            if not mask[door]:
                raise RuntimeError(f"door {door} is closed")
        right = sum(
            float(mask.argmax() == door) for door, mask in zip(chosen, self.masks, strict=True)
        )
        ended = bool(self.np_random.random() < 0.15)
        self.open_some()
        info = {} if ended and not self.final_mask else {"action_mask": self.given()}
        return self.seen(), right, ended, False, info

    def seen(self):
        return self.np_random.normal(size=2).astype(np.float32).clip(-9, 9)

    def open_some(self):
        self.masks = []
        for size in self.sizes:
            mask = self.np_random.random(size) < 0.4
            mask[self.np_random.integers(size)] = True
            self.masks.append(mask)

    def given(self):
        return self.masks[0].astype(np.int8) if len(self.masks) == 1 else self.action_masks()

    def action_masks(self):
        return np.concatenate(self.masks)


class ShownDoors(Doors):
    """The same with the mask in its observation, under another key than usual."""

    def __init__(self, **settings):
        super().__init__(**settings)
        mask = spaces.Box(0, 1, (sum(self.sizes),), np.int8)
        self.observation_space = spaces.Dict({"place": self.observation_space, "doors": mask})

    def seen(self):
        return {"place": super().seen(), "doors": np.concatenate(self.masks).astype(np.int8)}


class TooFewDoors(Doors):
    """Its mask has an entry too few."""

    def given(self):
        return super().given()[:-1]


class Silent(Doors):
    """Forgets the mask in the middle of an episode."""

    def step(self, action):
        *result, _ = super().step(action)
        return (*result, {})
