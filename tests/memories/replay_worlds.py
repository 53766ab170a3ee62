"""Streams of transitions that can be checked against a plain list, and memories to put them in."""

import numpy as np
import torch
from gymnasium import spaces

from coach_rl.architectures.gradient_step import named_tensors
from coach_rl.core.agents import ALONE
from coach_rl.core.records import Transition
from coach_rl.memories import ReplayMemoryParameters

CPU = torch.device("cpu")
OBSERVED = spaces.Dict({"observation": spaces.Box(-np.inf, np.inf, (2,), np.float64)})
ACTED = spaces.Box(-1, 1, (1,), np.float32)
SIDE = 2
"""Height and width of a frame."""


def build(
    *,
    num_envs=2,
    observed=OBSERVED,
    acted=ACTED,
    seed=0,
    discount=0.5,
    device=CPU,
    place=ALONE,
    scratch=None,
    **parameters,
):
    """A memory of 1000 transitions, unless parameters say otherwise, of an agent at a place."""
    return ReplayMemoryParameters(**{"capacity": 1000, **parameters}).build(
        observation_space=observed,
        action_space=acted,
        num_envs=num_envs,
        device=device,
        seed=seed,
        discount=discount,
        place=place,
        scratch=scratch,
    )


class Stream:
    """Episodes whose numbers say where they come from: row, episode and time in it.

    An observation is (row, number), where the number grows by one with every state a row has been
    in; an action is the number of the state it was taken in. `history` keeps every transition of
    each row as a plain dict, in order.
    """

    def __init__(self, num_rows, seed=0, end_chance=0.2):
        self.rng = np.random.default_rng(seed)
        self.num_rows, self.end_chance = num_rows, end_chance
        self.state = np.arange(num_rows) * 10_000
        self.history = [[] for _ in range(num_rows)]
        self.episode = np.zeros(num_rows, int)

    def step(self, rows=None):
        """A transition of some rows, all by default."""
        rows = np.arange(self.num_rows) if rows is None else np.asarray(rows, np.int64)
        count = len(rows)
        now = self.state[rows]
        kind = self.rng.random(count)
        terminated = kind < self.end_chance / 2
        truncated = (kind >= self.end_chance / 2) & (kind < self.end_chance)
        reward = self.rng.normal(size=count)
        duration = self.rng.integers(1, 4, count)
        for index, row in enumerate(rows):
            self.history[row].append(
                {
                    "number": int(now[index]),
                    "reward": float(np.float32(reward[index])),
                    "terminated": bool(terminated[index]),
                    "truncated": bool(truncated[index]),
                    "duration": int(duration[index]),
                    "episode": int(self.episode[row]),
                }
            )
        ended = terminated | truncated
        self.episode[rows] += ended
        self.state[rows] += 1 + ended
        return Transition(
            rows=rows,
            observation={"observation": np.stack([rows, now], axis=1).astype(np.float64)},
            action=now[:, None].astype(np.float32),
            reward=reward,
            next_observation={"observation": np.stack([rows, now + 1], axis=1).astype(np.float64)},
            terminated=terminated,
            truncated=truncated,
            duration=duration,
        )

    def some_rows(self):
        """Rows in any order, possibly none."""
        return self.rng.permutation(self.num_rows)[: self.rng.integers(0, self.num_rows + 1)]

    def kept(self, row_capacity):
        """What a memory of that capacity per row still has, by the number of the state."""
        return {one["number"]: one for row in self.history for one in row[-row_capacity:]}


def arrays(batch):
    """A batch as arrays by name, e.g. `reward` or `observation/position`."""
    return {name: column.cpu().numpy() for name, column in named_tensors(batch).items()}


def same_batches(left, right):
    left, right = arrays(left), arrays(right)
    assert left.keys() == right.keys()
    for name, column in left.items():
        assert column.dtype == right[name].dtype, name
        np.testing.assert_array_equal(column, right[name], err_msg=name)


def observed(size):
    """Observations with a stack of so many frames."""
    return spaces.Dict(
        {
            "camera": spaces.Box(0, 255, (SIDE, SIDE, size), np.uint8),
            "speed": spaces.Box(-1, 1, (1,), np.float32),
        }
    )


class Cameras:
    """Rows that see stacks of random frames.

    Episodes end at random; some of them only for the agent (a horizon, a goal), so that the stack
    goes on into the next.
    """

    def __init__(self, num_rows, size, seed, *, starts_full=False):
        self.rng, self.size, self.num_rows = np.random.default_rng(seed), size, num_rows
        self.stacks = np.zeros((num_rows, SIDE, SIDE, size), np.uint8)
        for row in range(num_rows):
            self.reset(row)
        if starts_full:  # something was seen before the memory is there
            self.stacks = self.rng.integers(0, 256, self.stacks.shape).astype(np.uint8)

    def frame(self):
        return self.rng.integers(0, 256, (SIDE, SIDE)).astype(np.uint8)

    def reset(self, row):
        self.stacks[row] = self.frame()[..., None]

    def step(self, rows):
        rows = np.asarray(rows, np.int64)
        before = self.stacks[rows].copy()
        for row in rows:
            self.stacks[row] = np.concatenate(
                [self.stacks[row][..., 1:], self.frame()[..., None]], axis=-1
            )
        after = self.stacks[rows].copy()
        kind = self.rng.random(len(rows))
        terminated, truncated = kind < 0.15, (kind >= 0.15) & (kind < 0.35)
        for row, ended, how in zip(rows, terminated | truncated, kind, strict=True):
            if ended and how < 0.3:  # beyond: cut off for the agent only
                self.reset(row)
        speeds = self.rng.random((2, len(rows), 1)).astype(np.float32)
        return Transition(
            rows=rows,
            observation={"camera": before, "speed": speeds[0]},
            action=self.rng.random((len(rows), 1)).astype(np.float32),
            reward=self.rng.random(len(rows)),
            next_observation={"camera": after, "speed": speeds[1]},
            terminated=terminated,
            truncated=truncated,
            duration=np.ones(len(rows), np.int64),
        )

    def some_rows(self):
        return self.rng.permutation(self.num_rows)[: self.rng.integers(0, self.num_rows + 1)]
