"""Levels for tests, and the same without the engine."""

import contextlib
import io

import gymnasium
import numpy as np
from gymnasium.envs.registration import load_env_creator

from coach_rl.environments.minigrid.levels import level_id
from coach_rl.environments.minigrid.missions import WORDS
from coach_rl.environments.minigrid.parameters import MiniGridParameters
from coach_rl.environments.minigrid.world import MiniGridWorld

SETTINGS = {
    "kwargs": {},
    "shows": "view",
    "given": (),
    "mission": "hidden",
    "words": WORDS,
    "most_steps": None,
}
SAMPLE = (
    *(
        "MiniGrid-DoorKey-8x8-v0",
        "MiniGrid-MultiRoom-N4-S5-v1",
        "MiniGrid-Dynamic-Obstacles-5x5-v0",
    ),
    *("MiniGrid-MemoryS7-v0", "BabyAI-PutNextS5N2Carrying-v0", "BabyAI-MiniBossLevel-v0"),
)
"""Ids of levels: doors, walls, moving things, choices, something carried at first, boxes."""


def world(name="DoorKey-8x8", **changes):
    """One level, reset with seed 0."""
    made = MiniGridWorld(level_id(name), **(SETTINGS | changes))
    made.reset(seed=0)
    return made


def bare(level, **kwargs):
    """MiniGrid's own environment of an id."""
    spec = gymnasium.registry[level]
    return load_env_creator(spec.entry_point)(**{**spec.kwargs, **kwargs})


def in_step(level, steps, *, seed=0, kwargs=None, **changes):
    """Answers of ours and of MiniGrid's environment to the same random actions, and both."""
    ours = MiniGridWorld(level, **(SETTINGS | changes | {"kwargs": kwargs or {}}))
    theirs = bare(level, **(kwargs or {}))
    rng = np.random.default_rng(seed)
    with contextlib.redirect_stdout(io.StringIO()):
        yield (ours.reset(seed=seed)[0], 0.0, False, False), start(theirs, seed), ours, theirs
        for _ in range(steps):
            action = int(rng.integers(theirs.action_space.n))
            mine = ours.step(np.int64(action))
            others = theirs.step(action)
            yield mine[:4], others[:4], ours, theirs
            if others[2] or others[3]:
                yield (ours.reset()[0], 0.0, False, False), start(theirs, None), ours, theirs


def start(env, seed):
    return env.reset(seed=seed)[0], 0.0, False, False


def build(num_envs=1, **fields):
    return MiniGridParameters(**fields).build(num_envs=num_envs)
