"""Gymnasium environments that fail in a known way, named as `failing_environments:Fails`."""

import os
import signal
import time
from typing import ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.vector import SyncVectorEnv, VectorEnv

TROUBLE = 1
"""The action that makes trouble in a step."""


class Fails(gymnasium.Env):
    """Walks at random; in trouble it does what `how` says.

    Args:
        how: A key of `IN_STEP` or `IN_RESET`; "" for nothing.
        at: The step of an episode from which on the action TROUBLE makes trouble.
    """

    action_space = spaces.Discrete(3)
    observation_space = spaces.Dict(
        {
            "place": spaces.Box(-1e6, 1e6, (2,), np.float32),
            "count": spaces.Box(0, 1000, (), np.int64),
        }
    )

    def __init__(self, how="", at=3):
        self.how, self.at = how, at
        self.episodes, self.place = 0, np.zeros(2, np.float32)
        self.is_doomed = False

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if self.is_doomed and self.how in IN_RESET:
            return IN_RESET[self.how](self)
        self.time = 0
        self.place[:] = self.np_random.normal(size=2)
        return self.observed(), {}

    def step(self, action):
        self.time += 1
        self.place += self.np_random.normal(size=2).astype(np.float32)  # in place: one buffer
        answer = self.observed(), float(self.place[0]), False, self.time >= 7, {"time": self.time}
        if action == TROUBLE and self.time >= self.at:
            if self.how in IN_RESET:
                self.is_doomed = True
                return *answer[:2], True, *answer[3:]
            if self.how:
                return IN_STEP[self.how](self, *answer)
        return answer

    def observed(self):
        return {"place": self.place, "count": self.time}


def raises(error):
    def trouble(env, *answer):
        raise error

    return trouble


def gives(index, value):
    """Answer with another value at a place of the five-tuple."""

    def trouble(env, *answer):
        changed = list(answer)
        changed[index] = value
        return tuple(changed)

    return trouble


def shows(**parts):
    """Show another observation."""

    def trouble(env, observation, *rest):
        changed = {**observation, **parts}
        return {key: value for key, value in changed.items() if value is not ...}, *rest

    return trouble


def sleeps(env, *answer):
    time.sleep(60)


class Speechless(Exception):
    """Has no text, and no value that could be shown."""

    def __str__(self):
        raise RuntimeError("in str")

    __repr__ = __str__


IN_STEP = {
    "raised": raises(ZeroDivisionError("the wheels came off")),
    "exits": raises(SystemExit(3)),
    "base exception": raises(BaseException("rare")),
    "no text": raises(ValueError()),
    "failing text": raises(Speechless()),
    "long text": raises(ValueError("far " * 1_000_000)),
    "leaves": lambda *_: os._exit(3),
    "killed": lambda *_: os.kill(os.getpid(), signal.SIGKILL),
    "crashed": lambda *_: os.kill(os.getpid(), signal.SIGSEGV),
    "hung": sleeps,
    "nan observed": shows(place=np.array([0, np.nan], np.float32)),
    "infinity observed": shows(place=np.array([np.inf, 0], np.float32)),
    "nan reward": gives(1, float("nan")),
    "infinite reward": gives(1, np.float32("inf")),
    "wrong shape": shows(place=np.zeros(3, np.float32)),
    "wrong type": shows(count=1.5),
    "text observed": shows(place="here"),
    "ragged": shows(place=[[1.0], [1.0, 2.0]]),
    "none observed": shows(place=None),
    "none for all": gives(0, None),
    "missing key": shows(place=...),
    "none reward": gives(1, None),
    "array reward": gives(1, np.ones(1)),
    "complex reward": gives(1, 1j),
    "text reward": gives(1, "1"),
    "long text reward": gives(1, "far " * 1_000_000),
    "reward without repr": gives(1, Speechless()),
    "huge reward": gives(1, 10**400),
    "text flag": gives(2, "no"),
    "none flag": gives(3, None),
    "array flag": gives(2, np.zeros(1, np.bool_)),
    "number flag": gives(3, 2),
    "list info": gives(4, ["time"]),
    "none info": gives(4, None),
    "bad success": gives(4, {"is_success": "yes"}),
    "nan success": gives(4, {"is_success": float("nan")}),
    "huge success": gives(4, {"is_success": 10**400}),
    "four values": lambda env, *answer: (*answer[:2], True, {}),
    "no tuple": lambda env, *answer: answer[1],
}
"""What an environment does in a step instead of answering well."""
IN_RESET = {
    "raised in reset": lambda env: raises(OSError("no more room"))(env),
    "left in reset": lambda env: os._exit(3),
    "hung in reset": sleeps,
    "nan in reset": lambda env: ({**env.observed(), "place": np.full(2, np.nan)}, {}),
    "no pair": lambda env: env.observed(),
    "none in reset": lambda env: (None, {}),
}
"""The same in the reset after the episode's end."""


class FailsOnce(Fails):
    """Cannot be made a second time by a row."""

    made = 0

    def __init__(self, how="raised", at=3):
        super().__init__(how, at)
        FailsOnce.made += 1
        if FailsOnce.made > 4:
            raise RuntimeError("out of licences")


class Touchy(Fails):
    """Fails in the reset of every seed but the first ones."""

    def reset(self, *, seed=None, options=None):
        if seed is not None and seed > 1000:
            raise RuntimeError("no such seed")
        return super().reset(seed=seed)


class NeverMade(Fails):
    """Is not made: its worker ends or hangs first."""

    def __init__(self, how):
        IN_STEP[how](self)


class Forks(Fails):
    """Forks its process in a step, and continues in both."""

    children: ClassVar = []

    def step(self, action):
        if action == TROUBLE:
            self.children.append(os.fork())
        return super().step(action)


def forks(num_envs) -> VectorEnv:
    return SyncVectorEnv([Forks] * num_envs)


class Slow(Fails):
    """Takes its time for a step."""

    def __init__(self, how=""):
        super().__init__()

    def step(self, action):
        time.sleep(0.06)
        return super().step(action)
