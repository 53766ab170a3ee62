"""Everything a replay memory can do at once, against plain lists of transitions."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from coach_rl.core.goals import GoalSpace
from coach_rl.core.records import Transition
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.memories import (
    HindsightParameters,
    PrioritisedParameters,
    ReplayMemoryParameters,
)
from tests.memories.plain_replay import ALWAYS, GOAL_KEY, PlainReplay, achieved, is_reached
from tests.memories.replay_worlds import build

DISCOUNT = 0.9


class Robots:
    """Rows that walk on a grid towards goals, seen by cameras with stacked frames.

    Places lie on a grid of quarters, so that goals are often reached just so. Episodes end by their
    goal, by dying, by a time limit, or only for the agent, and then frames go on.
    """

    def __init__(self, num_rows, frames, goal, seed):
        self.rng, self.num_rows = np.random.default_rng(seed), num_rows
        self.frames, self.goal = frames, goal
        self.place = np.zeros((num_rows, 3))
        self.wanted = np.zeros((num_rows, 2))
        self.stack = np.zeros((num_rows, 2, 2, frames), np.uint8)
        for row in range(num_rows):
            self.restart(row)

    @property
    def spaces(self):
        camera = {"camera": spaces.Box(0, 255, (2, 2, self.frames), np.uint8)}
        return spaces.Dict(
            {
                "place": spaces.Box(-9, 9, (3,), np.float64),
                "reached": spaces.Box(-9, 9, (1, 2), np.float64),
                GOAL_KEY: spaces.Box(-9, 9, (2,), np.float64),
                **(camera if self.frames else {}),
            }
        )

    def restart(self, row):
        self.place[row] = self.quarters(3)
        self.wanted[row] = self.quarters(2)
        self.stack[row] = self.frame()[..., None]

    def quarters(self, count):
        return self.rng.integers(-3, 4, count) / 4

    def frame(self):
        return self.rng.integers(0, 256, (2, 2)).astype(np.uint8)

    def seen(self, rows):
        seen = {
            "place": self.place[rows].copy(),
            "reached": self.place[rows][:, None, [2, 0]].copy(),
            GOAL_KEY: self.wanted[rows].copy(),
        }
        return seen | ({"camera": self.stack[rows].copy()} if self.frames else {})

    def step(self, rows):
        before, count, rng = self.seen(rows), len(rows), self.rng
        for row in rows:
            self.place[row] += rng.integers(-1, 2, 3) / 4
            newest = self.frame()[..., None]
            self.stack[row] = np.concatenate([self.stack[row][..., 1:], newest], axis=-1)
        after = self.seen(rows)
        reached = np.zeros(count, bool)
        for index, row in enumerate(rows):
            last = {key: values[index] for key, values in after.items()}
            reached[index] = is_reached(self.goal, achieved(self.goal, last), self.wanted[row])
        terminated = (reached & (rng.random(count) < 0.7)) | (rng.random(count) < 0.07)
        truncated = rng.random(count) < 0.12
        for row in rows[terminated | truncated]:
            if rng.random() < 0.6:
                self.restart(row)
            else:
                self.wanted[row] = self.quarters(2)
        return Transition(
            rows=rows,
            observation=before,
            action=rng.random((count, 1)).astype(np.float32),
            reward=rng.integers(-8, 9, count) / 4,
            next_observation=after,
            terminated=terminated,
            truncated=truncated,
            duration=rng.integers(1, 4, count),
            extras={"log_prob": rng.random(count).astype(np.float32)},
        )


def any_goals(rng):
    return GoalSpace(
        low=(-9.0, -9.0),
        high=(9.0, 9.0),
        threshold=tuple(rng.choice([0.25, 0.5, 0.75], 2).tolist()),
        reward=str(rng.choice(["sparse", "dense"])),
        reached_within=str(rng.choice(["elements", "ball"])),
        **rng.choice([{"key": "reached"}, {"key": "place", "elements": (2, 0)}]),
    )


def any_parameters(rng, *, goal, num_rows, frames):
    """Of a memory that holds 1 to 12 transitions of each row."""
    hindsight = HindsightParameters(
        goal=goal,
        strategy=str(rng.choice(["future", "final", "episode", "random"])),
        ratio=float(rng.choice([0.0, 2.0, ALWAYS, ALWAYS])),
        goal_ends_episode=bool(rng.integers(2)),
    )
    prioritised = PrioritisedParameters(
        alpha=float(rng.choice([0.0, 0.6, 1.0])), anneal_beta_over=EnvironmentSteps(80)
    )
    return {
        "capacity": num_rows * int(rng.integers(1, 13)),
        "n_step": int(rng.integers(1, 5)),
        "discount_by_duration": bool(rng.integers(2)),
        "hindsight": rng.choice([hindsight, hindsight, None]),
        "prioritised": rng.choice([prioritised, None]),
        "frame_stack": ("camera",) if frames and rng.integers(2) else (),
        "extras": ("log_prob",),
        "storage": str(rng.choice(["cpu", "device"])),
    }


@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 30 else pytest.mark.slow) for n in range(60)]
)
def test_replay_memory_samples_equal_plain_lists(seed):
    rng = np.random.default_rng(seed)
    num_rows, frames, goal = int(rng.integers(1, 4)), int(rng.integers(5)), any_goals(rng)
    chosen = any_parameters(rng, goal=goal, num_rows=num_rows, frames=frames)
    robots = Robots(num_rows, frames, goal, seed)
    arguments = {"num_envs": num_rows, "observed": robots.spaces, "discount": DISCOUNT, **chosen}
    memory = build(**arguments)
    plain = PlainReplay(ReplayMemoryParameters(**chosen), num_rows, DISCOUNT)
    for _ in range(60):
        transition = robots.step(rng.permutation(num_rows)[: rng.integers(num_rows + 1)])
        memory.add(transition)
        plain.add(transition)
        if rng.random() < 0.05:
            state = memory.state_dict()
            memory = build(**arguments, seed=int(rng.integers(99)))
            memory.load_state_dict(state)
        if rng.random() < 0.01:
            memory.clear()
            plain.clear()
        assert len(memory) == len(plain.all())
        if len(memory) and rng.random() < 0.4:
            batch = memory.sample(12)
            plain.check(batch)
            errors = torch.from_numpy(rng.normal(size=1000))[batch.position]
            memory.note_errors(batch.position, errors)
            plain.note_errors(batch.position.numpy(), errors.numpy())
