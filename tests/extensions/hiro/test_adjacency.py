"""HRAC's adjacency: which cells were visited within k steps of each other, and what is learned."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from coach_rl.extensions.hiro.sub_goal_guide import Adjacency, AdjacencyParameters, VisitedCells
from tests.agents.decisions import context

BOX = spaces.Box(-1, 1, (2,), np.float32)
CONTEXT = context({"observation": BOX}, BOX, num_envs=1)


def walk(seed, length=200):
    """Places of a random walk of a third of a cell a step."""
    return np.cumsum(np.random.default_rng(seed).normal(0, 0.3, (length, 2)), axis=0)


def adjacency(**changes):
    settings = {"epochs": 3, "layers": (16, 16), "embedding": 4, **changes}
    return Adjacency(
        AdjacencyParameters(**settings), size=2, steps=4, context=CONTEXT, owner="agent 'top'"
    )


def test_adjacent_cells_equal_a_plain_loop_over_several_rounds():
    cells, steps = VisitedCells(side=1.0, steps=5, most=1_000), 5
    numbers, pairs = {}, set()
    for round_ in range(3):
        trajectories = [walk(10 * round_ + number, 40 + number) for number in range(3)]
        cells.add(trajectories)
        for places in trajectories:
            seen = [tuple(round(value) for value in place) for place in places]
            for cell in seen:
                numbers.setdefault(cell, len(numbers))
            for first in range(len(seen)):
                for later in range(first + 1, min(first + steps, len(seen))):
                    pairs |= {(seen[first], seen[later]), (seen[later], seen[first])}
    names = list(numbers)
    slow = [[one == other or (one, other) in pairs for other in names] for one in names]
    assert [tuple(place) for place in cells.places.astype(int).tolist()] == names
    np.testing.assert_array_equal(cells.adjacent, slow)
    assert 0.02 < np.mean(slow) < 0.7


def test_cells_beyond_the_most_are_left_out():
    cells = VisitedCells(side=1.0, steps=2, most=2)
    cells.add([np.array([[0.0], [5.0], [9.0], [0.0], [5.0]])])
    assert cells.places.ravel().tolist() == [0.0, 5.0]
    assert cells.adjacent.all()


def test_a_network_learns_what_is_adjacent():
    learner = adjacency(epochs=60, layers=(64, 64), embedding=8)
    places = np.stack([np.arange(30) % 10, np.arange(30) // 10], axis=1).astype(np.float64)
    learner.learn([places])
    found = learner.metrics()
    assert found["adjacency/cells"] == 30
    assert found["adjacency/adjacent_found"] > 0.9
    assert found["adjacency/apart_found"] > 0.9
    embedded = learner.embedded(torch.from_numpy(learner.cells.places)).numpy()
    away = np.linalg.norm(embedded[:, None] - embedded[None], axis=2)
    near = away <= (1.0 + 1.2) / 2
    upper = np.triu_indices(30, 1)
    known = learner.cells.adjacent[upper]
    assert found["adjacency/adjacent_found"] == pytest.approx(near[upper][known].mean())
    assert found["adjacency/apart_found"] == pytest.approx((~near[upper])[~known].mean())


def test_gradient_steps_of_a_round_are_bounded(monkeypatch):
    steps = []
    learner = adjacency(most_updates=7, batch=8)
    engine = learner.engine
    step = engine.step
    monkeypatch.setattr(
        engine, "step", lambda data, index: steps.append(index) or step(data, index)
    )
    learner.learn([walk(0)])
    assert len(steps) == 7
    assert all(len(index) == 8 for index in steps)


def test_an_epoch_takes_every_pair_once(monkeypatch):
    learner, seen = adjacency(epochs=1, batch=10), []
    engine = learner.engine
    step = engine.step
    monkeypatch.setattr(
        engine, "step", lambda data, index: seen.extend(index.tolist()) or step(data, index)
    )
    learner.learn([walk(0)])
    count = len(learner.cells)
    assert sorted(seen) == list(range(count * (count - 1) // 2))
