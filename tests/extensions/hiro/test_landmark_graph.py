"""Farthest points, and the cheapest ways between places, against plain loops."""

import numpy as np

from coach_rl.extensions.hiro.landmarks import costs_to, farthest_points, path_costs


def test_farthest_points_equal_a_plain_loop():
    points = np.random.default_rng(1).normal(size=(60, 3))
    chosen = [0]
    while len(chosen) < 12:
        gaps = [min(np.linalg.norm(p - points[c]) for c in chosen) for p in points]
        chosen.append(int(np.argmax(gaps)))
    assert farthest_points(points, 12).tolist() == chosen


def test_farthest_points_are_different_ones():
    points = np.array([[1.0, 1.0], [2.0, 2.0]])[np.array([0, 1, 0, 1, 1])]
    assert farthest_points(points, 4).tolist() == [0, 1]


def test_path_costs_by_hand():
    # The way 0 -> 1 -> 2 costs 3, less than the edge of 5; an edge may cost 0; 2 leads nowhere.
    none = np.inf
    edges = np.array([[0.0, 1.0, 5.0], [0.0, 0.0, 2.0], [none, none, 0.0]])
    assert path_costs(edges).tolist() == [[0.0, 1.0, 3.0], [0.0, 0.0, 2.0], [none, none, 0.0]]


def test_ways_to_targets_equal_a_plain_search():
    rng = np.random.default_rng(2)
    edges, last = rng.uniform(0, 9, (7, 7)), rng.uniform(0, 9, (7, 4))
    np.fill_diagonal(edges, 0.0)
    best = last.copy()
    for _ in range(7):  # Bellman-Ford
        for place in range(7):
            for target in range(4):
                onward = [edges[place, middle] + best[middle, target] for middle in range(7)]
                best[place, target] = min(best[place, target], *onward)
    np.testing.assert_allclose(costs_to(edges, last), best)
