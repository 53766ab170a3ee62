"""Sequences of a rollout against plain lists, and what has to fit in memories of sequences."""

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import HIDDEN_STATE, Transition
from coach_rl.extensions.recurrent_layers.sequences import SequenceParameters, rollout_sequences
from coach_rl.memories.draws import SingleTransitions
from coach_rl.memories.rollout_memory import RolloutMemory
from tests.memories.replay_worlds import build

SEEN = spaces.Dict({"x": spaces.Box(-np.inf, np.inf, (), np.float32)})
KEPT = spaces.Dict({**SEEN.spaces, HIDDEN_STATE: spaces.Box(-np.inf, np.inf, (2,), np.float32)})


class Walks:
    """Rows whose transitions are numbered, and end or do not follow by chance.

    Transition number n sees n, leads to n + 0.5, and is chosen in the hidden state (n, -n).
    """

    def __init__(self, num_rows, seed):
        self.rng, self.count = np.random.default_rng(seed), 0
        self.lists = [[] for _ in range(num_rows)]  # segments of numbers, by row
        self.ended = np.ones(num_rows, bool)

    def step(self):
        rows = np.flatnonzero(self.rng.random(len(self.lists)) < 0.7)
        numbers = self.count + np.arange(len(rows))
        self.count += len(rows)
        terminated, truncated = self.rng.random((2, len(rows))) < 0.05
        follows = ~self.ended[rows] & (self.rng.random(len(rows)) > 0.05)
        for row, number, goes in zip(rows, numbers, follows, strict=True):
            if not goes:
                self.lists[row].append([])
            self.lists[row][-1].append(int(number))
        self.ended[rows] = terminated | truncated
        seen = numbers.astype(np.float32)
        return Transition(
            rows=rows,
            observation={"x": seen},
            action=numbers,
            reward=seen.astype(np.float64),
            next_observation={"x": seen + 0.5},
            terminated=terminated,
            truncated=truncated,
            duration=np.ones(len(rows), np.int64),
            follows=follows,
            extras={HIDDEN_STATE: np.stack([seen, -seen], axis=1)},
        )


def built(num_envs, *, space=KEPT, **parameters):
    return build(num_envs=num_envs, observed=space, acted=spaces.Discrete(10_000), **parameters)


@pytest.mark.parametrize("length", [1, 2, 5, 16, 300])
def test_rollout_sequences_hold_every_transition_once_in_order(length):
    walks, memory = Walks(num_rows=5, seed=length), RolloutMemory(1_000)
    while len(memory) < 400:
        memory.add(walks.step())
    columns = memory.columns
    sequences = rollout_sequences(
        memory.grid(),
        ended=columns["/terminated"] | columns["/truncated"],
        follows=columns["/follows"],
        length=length,
        padding=999,
    )
    expected = [
        segment[at : at + length]
        for row in walks.lists
        for segment in row
        for at in range(0, len(segment), length)
    ]
    found = [
        [int(columns["/actions"][place]) for place in each if place != 999] for each in sequences
    ]
    assert found == expected
    longest = max(map(len, expected))
    assert longest <= sequences.shape[1] < max(2 * longest, 2)
    assert all(999 not in each[: len(kept)] for each, kept in zip(sequences, found, strict=True))


MEMORY = {"capacity": 400, "draws": SequenceParameters(length=8)}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"draws": SingleTransitions()}, "SequenceParameters"),
        ({"space": SEEN}, "TorsoParameters.recurrence"),
        ({"n_step": 3}, "n_step=3"),
    ],
)
def test_memory_of_sequences_that_do_not_fit_its_columns_is_refused(change, message):
    with pytest.raises(ConfigurationError, match=message):
        built(4, **{**MEMORY, **change})


def test_memory_of_sequences_holds_one_as_long_as_a_row():
    draws = SequenceParameters(length=6, burn_in=2)
    assert built(4, capacity=32, draws=draws).layout.row_capacity == 8
    with pytest.raises(ConfigurationError, match=r"8 transitions.*7 that are kept"):
        built(4, capacity=31, draws=draws)
