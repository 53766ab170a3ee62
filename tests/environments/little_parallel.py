"""A small PettingZoo parallel environment and its misbehaving kin, as `little_parallel:Class`."""

from typing import ClassVar

import numpy as np
import pettingzoo
from gymnasium import spaces
from gymnasium.utils import seeding
from pettingzoo import ParallelEnv
from pettingzoo.utils import BaseParallelWrapper
from pettingzoo.utils.conversions import parallel_to_aec


class Hunt(ParallelEnv):
    """Two hunters of unlike kinds and a hare; each leaves for a reason of its own.

    The hound (Dict observation) terminates by chance, the hawk (Dict action) is truncated when it
    is tired, the hare terminates when the others are gone, or lives until `limit`.
    """

    def __init__(self, limit=9, trouble="", render_mode=None):
        self.metadata = {"name": "hunt", "render_modes": ["rgb_array"]}
        self.limit, self.trouble, self.render_mode = limit, trouble, render_mode
        self.possible_agents = ["hound", "hawk", "hare"]
        self.np_random = seeding.np_random(None)[0]
        self.place = np.zeros(3, np.float32)

    def observation_space(self, agent):
        box = spaces.Box(-99, 99, (3,), np.float32)
        if agent == "hound":
            return spaces.Dict({"all": box, "nose": spaces.Discrete(5, start=1)})
        return box

    def action_space(self, agent):
        if agent == "hawk":
            wings = spaces.Box(-1, 1, (2,), np.float32)
            return spaces.Dict({"cry": spaces.Discrete(2), "wings": wings})
        return spaces.Discrete(3)

    def reset(self, seed=None, options=None):
        if seed is not None:
            self.np_random = seeding.np_random(seed)[0]
        self.agents = self.possible_agents[: 2 if self.trouble == "late" else 3]
        self.time = 0
        self.place[:] = self.np_random.uniform(-1, 1, 3)
        return {name: self._seen(name) for name in self.agents}, {n: {} for n in self.agents}

    def step(self, actions):
        assert list(actions) == self.agents, "actions are for those who are there"
        self.time += 1
        for index, name in enumerate(self.possible_agents):
            if name in actions:
                assert self.action_space(name).contains(actions[name])
                push = actions[name]["wings"].sum() if name == "hawk" else actions[name] - 1
                self.place[index] += push + self.np_random.normal()
        acted = list(self.agents)
        ended = {
            "hound": self.np_random.random() < 0.2,
            "hawk": False,
            "hare": self.agents == ["hare"],
        }
        cut = {
            "hound": self.time >= self.limit,
            "hawk": self.time >= min(self.limit, 4 + self.place[0]),
            "hare": self.time >= self.limit,
        }
        self.agents = [name for name in acted if not (ended[name] or cut[name])]
        if self.trouble == "lost" and self.time == 2:
            self.agents = self.agents[1:]
        if self.trouble == "back" and len(self.agents) == 2:
            self.agents = acted
        return (
            {name: self._seen(name) for name in acted},
            {name: self.place[self.possible_agents.index(name)] for name in acted},
            {name: ended[name] for name in acted},
            {name: cut[name] for name in acted},
            {name: {"time": self.time} if name == "hare" else {} for name in acted},
        )

    def render(self):
        return np.full((4, 6, 3), self.time, np.uint8)

    def _seen(self, name):
        if name == "hound":
            return {"all": self.place, "nose": 1 + self.time % 5}  # the same array every time
        return self.place.copy()


class Answers(Hunt):
    """Hunters of which the hawk or the hound is out in the second step, with an answer of its own.

    Args:
        end: How they are out: terminated, truncated or both.
        left_out: Parts of that answer without the hound.
        changed: Parts of that answer, by their place in it, with another value for the hound, or
            as a whole.
    """

    def __init__(self, end="", left_out=(), changed=None, whole=None):
        super().__init__(limit=99)
        self.end, self.left_out = end, tuple(left_out)
        self.changed, self.whole = changed or {}, whole or {}

    def step(self, actions):
        self.time += 1
        names = self.agents
        answer = [
            {name: self._seen(name) for name in names},
            dict.fromkeys(names, 1.0),
            dict.fromkeys(names, False),
            dict.fromkeys(names, False),
            {name: {} for name in names},
        ]
        if self.time == 2:
            for place, kind in ((2, "terminated"), (3, "truncated")):
                answer[place]["hound"] = self.end in (kind, "both")
            answer[1]["hound"] = -10.0
            self.agents = names[1:] if self.end else names
            for place in self.left_out:
                del answer[place]["hound"]
            for place, value in self.changed.items():
                answer[int(place)]["hound"] = value
            for place, value in self.whole.items():
                answer[int(place)] = value
        return tuple(answer)


class KnockOut(pettingzoo.AECEnv):
    """A game in turn: action 3 puts out the player before the mover, who stays until its turn.

    Args:
        way: How that player is out: terminated or truncated.
        masked: Whether infos have masks: of the mover alone, which forbid its last action.
    """

    metadata: ClassVar = {"name": "knock_out", "is_parallelizable": False, "render_modes": []}
    render_mode = None

    def __init__(self, way="terminated", masked=False):
        self.possible_agents = ["p0", "p1", "p2"]
        self.way, self.masked = way, masked

    def observation_space(self, agent):
        return spaces.Box(-99, 99, (2,), np.float32)

    def action_space(self, agent):
        return spaces.Discrete(5)

    def observe(self, agent):
        return np.array([self.possible_agents.index(agent), self.moves], np.float32)

    def reset(self, seed=None, options=None):
        self.agents, self.moves, self.agent_selection = self.possible_agents[:], 0, "p0"
        for name, value in (("rewards", 0.0), ("_cumulative_rewards", 0.0)):
            setattr(self, name, dict.fromkeys(self.agents, value))
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self._give_masks()

    def step(self, action):
        mover = self.agent_selection
        following = self.agents[(self.agents.index(mover) + 1) % len(self.agents)]
        if mover not in self._playing():
            self._was_dead_step(action)
            self.agent_selection = following if self.agents else mover
        else:
            assert not self.masked or action != 4, "forbidden"
            self._clear_rewards()
            self.moves += 1
            self.rewards[mover] += 1
            playing = self._playing()
            if action == 3 and len(playing) == 3:
                ends = self.terminations if self.way == "terminated" else self.truncations
                ends[playing[playing.index(mover) - 1]] = True
            if self.moves >= 8:
                self.terminations = dict.fromkeys(self.agents, True)
            self.agent_selection = following
            self._accumulate_rewards()
        self._give_masks()

    def _playing(self):
        return [
            each for each in self.agents if not (self.terminations[each] or self.truncations[each])
        ]

    def _give_masks(self):
        self.infos = {name: {} for name in self.agents}
        if self.masked and self.agents:
            self.infos[self.agent_selection]["legal"] = np.array([1, 1, 1, 1, 0], np.int8)


class Birds(ParallelEnv):
    """Two birds of one kind, with actions of both kinds, for so many steps."""

    metadata: ClassVar = {"name": "birds"}
    possible_agents: ClassVar = ["hawk", "kite"]

    def __init__(self, limit=6):
        self.limit = limit

    def observation_space(self, agent):
        return spaces.Tuple((spaces.Box(0, 99, (1,), np.float32), spaces.Discrete(2)))

    def action_space(self, agent):
        wings = spaces.Box(0, 4, (2,), np.float32)
        return spaces.Dict(
            {"cry": spaces.Discrete(2), "wings": wings, "feet": spaces.Tuple([wings])}
        )

    def reset(self, seed=None, options=None):
        self.agents, self.time = list(self.possible_agents), 0
        return self._seen(), {name: {} for name in self.agents}

    def step(self, actions):
        for name, action in actions.items():
            assert self.action_space(name).contains(action)
        self.time += 1
        reward = {
            name: float(action["wings"][0] * action["cry"]) for name, action in actions.items()
        }
        late = self.time >= self.limit
        self.agents = [] if late else self.agents
        flags = [dict.fromkeys(actions, value) for value in (False, late)]
        return self._seen(), reward, *flags, {name: {} for name in actions}

    def _seen(self):
        return {name: (np.float32([self.time]), 1) for name in self.possible_agents}


class Nameless(Hunt):
    def __init__(self):
        super().__init__()
        self.possible_agents = []


class Louder(BaseParallelWrapper):
    """Multiplies rewards."""

    def __init__(self, env, by=2):
        super().__init__(env)
        self.by = by

    def step(self, actions):
        seen, rewards, *rest = super().step(actions)
        return seen, {name: self.by * reward for name, reward in rewards.items()}, *rest


def turn_based() -> pettingzoo.AECEnv:
    return parallel_to_aec(Hunt())
