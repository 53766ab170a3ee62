"""Bonuses built by themselves, and decisions to reward."""

import numpy as np
from gymnasium import spaces

from tests.agents.decisions import context as context_of
from tests.agents.decisions import outcome as outcome_of

SPACE = spaces.Dict(
    {
        "place": spaces.Box(-10.0, 10.0, (2,), np.float64),
        "view": spaces.Box(0, 9, (3,), np.int8),
    }
)


def context(space=SPACE, num_envs=4, seed=0):
    """The context of an agent that observes `space`."""
    return context_of(space, spaces.Discrete(3), num_envs=num_envs, seed=seed)


def outcome(rows, observation, info=None):
    """What decisions of rows led to."""
    rows = np.asarray(rows, np.int64)
    return outcome_of(observation, rows=rows, reward=0.0, info=info or {})


def random_observation(rng):
    """A place on a coarse grid, so that many are visited again."""
    return {
        "place": rng.integers(-2, 3, 2).astype(np.float64) / 2,
        "view": rng.integers(0, 3, 3).astype(np.int8),
    }


def joined(observations):
    """Observations of rows, [R, ...] each."""
    return {key: np.stack([each[key] for each in observations]) for key in observations[0]}


def decisions(rng, num_envs, steps):
    """Lists of rows, what they acted on, where it led, and whether their episode began there."""
    now = [random_observation(rng) for _ in range(num_envs)]
    begins = [True] * num_envs
    for _ in range(steps):
        rows = [row for row in range(num_envs) if rng.random() < 0.7]
        if not rows:
            continue
        after = [random_observation(rng) for _ in rows]
        yield rows, [now[row] for row in rows], after, [begins[row] for row in rows]
        for row, each in zip(rows, after, strict=True):
            begins[row] = rng.random() < 0.15
            now[row] = random_observation(rng) if begins[row] else each
