"""Places on a grid and of neighbours, and the edges between them."""

import itertools

import numpy as np
import pytest

from coach_rl.extensions.planning.roadmap import Roadmap


def test_places_lie_in_the_middle_of_equal_cells():
    grid = Roadmap.grid(np.array([-4.0, 0.0]), np.array([4.0, 2.0]), 2.0)
    assert grid.places.tolist() == [[-3, 1], [-1, 1], [1, 1], [3, 1]]
    assert list(zip(grid.begins, grid.ends, strict=True)) == [
        (0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2),
    ]  # fmt: skip
    assert set(grid.lengths) == {2.0}


@pytest.mark.parametrize("size", [1, 2, 3])
def test_edges_lead_to_all_neighbours_and_to_nothing_else(size):
    grid = Roadmap.grid(np.zeros(size), np.full(size, 3.0), 1.0)
    expected = {
        (one, other)
        for one, other in itertools.permutations(range(len(grid.places)), 2)
        if np.abs(grid.places[one] - grid.places[other]).max() < 1.5
    }
    found = list(zip(grid.begins.tolist(), grid.ends.tolist(), strict=True))
    assert set(found) == expected
    assert found == sorted(found)
    for number, (one, other) in enumerate(found):
        assert grid.edge(one, other) == number
        assert grid.lengths[number] == pytest.approx(
            np.linalg.norm(grid.places[one] - grid.places[other])
        )
    assert grid.edge(0, 0) is None
    if size > 1:
        assert grid.edge(0, len(grid.places) - 1) is None


def test_the_nearest_place():
    grid = Roadmap.grid(np.zeros(2), np.array([3.0, 4.0]), 1.0)
    assert grid.places[grid.nearest(np.array([[0.9, 3.8], [-5, 1.6]]))].tolist() == [
        [0.5, 3.5],
        [0.5, 1.5],
    ]


def test_of_places_that_are_equally_near_all_are_found_but_those_out_of_reach():
    grid = Roadmap.grid(np.zeros(2), np.array([3.0, 4.0]), 1.0)
    places = [grid.places[grid.all_nearest(np.array(at), to=0)].tolist() for at in ([1, 1], [2.6])]
    assert places[0] == [[0.5, 0.5], [0.5, 1.5], [1.5, 0.5], [1.5, 1.5]]
    assert places[1] == [[2.5, y] for y in (0.5, 1.5, 2.5, 3.5)], "of the first element alone"
    apart = Roadmap.of_neighbours(np.array([[0.0], [1.0], [9.0], [10.0]]), 1)
    assert apart.all_nearest(np.array([5.0]), to=0).tolist() == [1]
    assert apart.all_nearest(np.array([5.0]), to=3).tolist() == [2]


def test_a_part_of_a_grid_has_the_edges_between_its_places():
    grid = Roadmap.grid(np.zeros(2), np.array([3.0, 3.0]), 1.0)
    numbers = np.array([4, 0, 8, 1])
    part = grid.part(numbers)
    assert part.places.tolist() == grid.places[numbers].tolist()
    ends = list(zip(part.begins.tolist(), part.ends.tolist(), strict=True))
    assert ends == [(0, 1), (0, 2), (0, 3), (1, 0), (1, 3), (2, 0), (3, 0), (3, 1)]
    for (begin, end), length in zip(ends, part.lengths, strict=True):
        assert length == grid.lengths[grid.edge(numbers[begin], numbers[end])]
