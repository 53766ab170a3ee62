"""A world whose action space is any of a list, with members' own ends, turns and masks.

Evaluations record what they show and are sent, so that loaded and exported policies can repeat it.
"""

import gymnasium
import numpy as np
from gymnasium import spaces

from coach_rl.core.discrete_actions import choice_sizes

SPACES = {
    "Discrete": spaces.Discrete(4),
    "Discrete uint8": spaces.Discrete(3, start=2, dtype=np.uint8),
    "Discrete uint16": spaces.Discrete(3, dtype=np.uint16),
    "MultiDiscrete": spaces.MultiDiscrete([3, 2]),
    "MultiDiscrete int8": spaces.MultiDiscrete([2, 3], dtype=np.int8, start=[-1, 4]),
    "MultiDiscrete of rows": spaces.MultiDiscrete([[2, 3]], dtype=np.int32),
    "MultiBinary": spaces.MultiBinary(2),
    "Box": spaces.Box(-1, 1, (2,), np.float32),
    "Box float64": spaces.Box(0.1, 0.7, (2,), np.float64),
    "Box float16": spaces.Box(-1, 1, (2,), np.float16),
    "Box of a number": spaces.Box(-1, 1, (), np.float32),
    "Box of rows": spaces.Box(-2, 2, (1, 2), np.float64),
    "Tuple of one": spaces.Tuple((spaces.Discrete(3, start=1, dtype=np.int16),)),
    "Dict of one": spaces.Dict({"turn": spaces.Box(-1, 1, (2,), np.float64)}),
    "Dict of numbers": spaces.Dict(
        {"0": spaces.Discrete(2, dtype=np.int32), "1": spaces.Box(-1, 1, (1,))}
    ),
    "Dict of paths": spaces.Dict(
        {"red/0": spaces.Discrete(3), "red/1": spaces.Discrete(2, dtype=np.uint8)}
    ),
    "nested": spaces.Dict(
        {
            "arm": spaces.Tuple((spaces.Box(-1, 1, (), np.float64), spaces.MultiBinary(2))),
            "a/b": spaces.Tuple((spaces.MultiDiscrete([2, 2], dtype=np.int8),)),
        }
    ),
}
NAMES = ("a", "b", "c")
RECORDED = []
"""The episodes of evaluations, each a list of (observation, who is over, action)."""


class Composed(gymnasium.Env):
    """A point that is moved by all parts of actions.

    Args:
        kind: Key of `SPACES`.
        members: Those whose ends are reported.
        masks: Whether observations hold an action mask.
        turns: Whether they show whose turn it is.
        records: Whether episodes are kept in `RECORDED`.
    """

    def __init__(self, kind, *, members=0, masks=False, turns=False, records=False):
        self.action_space = SPACES[kind]
        self.names, self.records, self.episode = NAMES[:members], records, []
        self.sizes = choice_sizes(self.action_space) if masks else ()
        shown = {"observation": spaces.Box(-2, 2, (3,), np.float32)}
        if masks:
            shown["action_mask"] = spaces.MultiBinary(sum(self.sizes))
        if turns:
            shown |= {f"turn/{name}": spaces.Discrete(2) for name in self.names}
        self.observation_space = spaces.Dict(shown)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.time = self.np_random.uniform(-1, 1, 3), 0
        self.length = int(self.np_random.integers(7, 16))
        self.last = {name: int(self.np_random.integers(1, 14)) for name in self.names}
        self.over, self.episode = dict.fromkeys(self.names, False), []
        return self._seen(), self._info()

    def step(self, action):
        assert self.action_space.contains(action), f"{action!r} is not in {self.action_space}"
        if self.records:
            self.episode.append((self.seen, dict(self.over), action))
        moved = sum(float(np.sum(leaf)) for leaf in leaves(action))
        self.place = 0.7 * self.place + 0.4 * np.sin(moved + np.arange(3) + self.time)
        self.time += 1
        self.over = {name: self.time >= last for name, last in self.last.items()}
        ends = self.time >= self.length
        if ends and self.records:
            RECORDED.append(self.episode)
        return self._seen(), float(self.place[0]), ends, False, self._info()

    def _seen(self):
        self.seen = {"observation": self.place.astype(np.float32)}
        if self.sizes:
            allowed = [self.np_random.integers(0, 2, size) for size in self.sizes]
            for each in allowed:
                each[self.np_random.integers(len(each))] = 1
            self.seen["action_mask"] = np.concatenate(allowed).astype(np.int8)
        turn = self.names[self.time * self.time % len(self.names)] if self.names else ""
        for name in self.observation_space.spaces:
            if name.startswith("turn/"):
                self.seen[name] = int(name == f"turn/{turn}")
        return self.seen

    def _info(self):
        return {
            "agents": {
                name: {"reward": 0.1, "terminated": over and name != "b", "truncated": over}
                for name, over in self.over.items()
            }
        }


def leaves(action):
    """The arrays in nested dicts and tuples."""
    parts = action.values() if isinstance(action, dict) else action
    if not isinstance(action, dict | tuple):
        return [np.asarray(action)]
    return [leaf for part in parts for leaf in leaves(part)]
