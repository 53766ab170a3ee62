"""Sequences of a rollout and of a replay memory, against plain lists of transitions."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from coach_rl.core.errors import ConfigurationError
from coach_rl.core.records import HIDDEN_STATE, Transition
from coach_rl.memories import PrioritisedParameters, ReplayMemoryParameters
from coach_rl.memories.draws import SingleTransitions
from coach_rl.memories.rollout_memory import RolloutMemory
from coach_rl.memories.sequences import SequenceParameters, rollout_sequences

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
    return ReplayMemoryParameters(**parameters).build(
        observation_space=space,
        action_space=spaces.Discrete(10_000),
        num_envs=num_envs,
        device=torch.device("cpu"),
        seed=0,
        discount=0.9,
    )


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


@pytest.mark.parametrize(
    ("length", "burn_in", "capacity", "prioritised"),
    [
        (1, 0, 300, False),
        (4, 0, 5_000, False),
        (8, 3, 400, True),
        (7, 12, 5_000, True),
        (16, 5, 90, False),
    ],
)
def test_replay_sequences_equal_those_of_plain_lists(length, burn_in, capacity, prioritised):
    walks = Walks(num_rows=4, seed=length)
    memory = built(
        4,
        capacity=capacity,
        draws=SequenceParameters(length=length, burn_in=burn_in),
        prioritised=PrioritisedParameters() if prioritised else None,
    )
    for _ in range(300):
        memory.add(walks.step())
    segments = {n: segment for row in walks.lists for segment in row for n in segment}
    kept: set[int] = set()
    for lists in walks.lists:
        kept |= set([n for segment in lists for n in segment][-(capacity // 4) :])
    drawn = set()
    for _ in range(3_000 // length):
        batch = memory.sample(3 * length + length - 1)  # what does not fill a sequence is left out
        x, mask = (each.view(3, -1).numpy() for each in (batch.observation["x"], batch.valid))
        longest = mask.sum(axis=1).max()
        assert longest <= mask.shape[1] <= min(length, max(2 * longest - 2, longest))
        for number in range(3):
            real = x[number][mask[number]].astype(int)
            segment = segments[real[0]]
            place = segment.index(real[0])
            assert real.tolist() == [n for n in segment[place : place + length] if n in kept]
            assert not mask[number][len(real) :].any()
            earlier = [n for n in segment[max(0, place - burn_in) : place] if n in kept]
            begin = (earlier or [real[0]])[0]
            for observation, burnt in (
                (batch.observation, earlier),
                (batch.next_observation, [*earlier, int(real[0])]),
            ):
                state = observation[HIDDEN_STATE].numpy()[number]
                assert state.tolist() == [begin, -begin]
                if "burn_in/mask" in observation:
                    shown = observation["burn_in/mask"].view(3, -1)[number].numpy()
                    seen = observation["burn_in/x"].view(3, -1)[number].numpy()
                    assert seen[shown].astype(int).tolist() == burnt
                    assert shown.tolist() == sorted(shown.tolist())
                else:
                    assert not burnt
            drawn |= set(real.tolist())
        flat = mask.ravel()
        after = batch.next_observation["x"].numpy()[flat]
        np.testing.assert_array_equal(after, x.ravel()[flat] + 0.5)
        np.testing.assert_array_equal(batch.action.numpy()[flat], x.ravel()[flat])
        np.testing.assert_array_equal(batch.reward.numpy()[flat], x.ravel()[flat])
        assert (batch.weight.numpy()[~flat] == 0).all()
        if not prioritised:
            np.testing.assert_allclose(
                batch.weight.numpy()[flat], flat.size / flat.sum(), rtol=1e-6
            )
    assert len(drawn) > (0.5 if prioritised else 0.9) * len(kept)


def test_sequence_priorities_are_shared_by_its_transitions():
    params = SequenceParameters(length=4, peak=0.75)
    positions = np.array([10, 11, 12, 13, 30, 31, 31, 31])
    errors = np.array([1.0, -4.0, 2.0, 1.0, 3.0, -1.0, 99.0, 99.0])
    found, priorities = params.priorities(positions, errors, 2)
    assert found.tolist() == [10, 11, 30, 31]
    assert priorities.tolist() == [3.5, 3.5, 2.75, 2.75]


def test_prioritised_sequences_with_large_errors_are_drawn_more_often():
    walks = Walks(num_rows=1, seed=0)
    memory = built(
        1,
        capacity=64,
        draws=SequenceParameters(length=4),
        prioritised=PrioritisedParameters(alpha=1.0),
    )
    for _ in range(200):
        memory.add(walks.step())
    for _ in range(40):  # every transition gets an error
        batch = memory.sample(64)
        memory.note_errors(batch.position, torch.full((64,), 0.01))
    batch = memory.sample(4)
    memory.note_errors(batch.position, torch.full((4,), 50.0))
    chosen = set(batch.position.tolist())
    often = [set(memory.sample(4).position.tolist()) <= chosen for _ in range(50)]
    assert np.mean(often) > 0.9


MEMORY = {"capacity": 400, "draws": SequenceParameters(length=8)}


@pytest.mark.parametrize(
    ("settings", "space", "said"),
    [
        ({**MEMORY, "draws": SingleTransitions()}, KEPT, "SequenceParameters"),
        (MEMORY, SEEN, "TorsoParameters.recurrence"),
        ({**MEMORY, "capacity": 28}, KEPT, "8 transitions.*7 that are kept"),
        ({**MEMORY, "n_step": 3}, KEPT, "n_step=3"),
        ({"draws": {"length": 0}}, KEPT, "length"),
        ({"draws": {"length": 4, "burn_in": -1}}, KEPT, "burn_in"),
    ],
)
def test_memory_of_sequences_refuses_what_it_cannot_hold(settings, space, said):
    def build():
        draws = settings["draws"]
        if isinstance(draws, dict):
            draws = SequenceParameters(**draws)
        built(4, space=space, **{**settings, "draws": draws})

    with pytest.raises(ConfigurationError, match=said):
        build()
