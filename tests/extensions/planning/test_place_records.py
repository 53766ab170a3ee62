"""Which places of a graph were visited, and which one is worth exploring."""

import numpy as np

from coach_rl import FarthestPoints, GridPlaces
from coach_rl.extensions.planning.places import PlaceRecords

LOW, HIGH = np.zeros(1), np.full(1, 4.0)


def records_of_grid():
    """Four places at 0.5, 1.5, 2.5 and 3.5."""
    places = GridPlaces(spacing=1.0).build(LOW, HIGH, 1)
    return PlaceRecords(places)


def numbers_for(*positions):
    """Uniform numbers [1, 8] by which the grid draws these positions, the last one repeatedly."""
    drawn = [*positions, *[positions[-1]] * (8 - len(positions))]
    return np.array([drawn]) / 4.0


def test_the_least_visited_of_eight_drawn_places_is_explored():
    records = records_of_grid()
    records.visit(np.array([0, 0, 1, 1, 1, 3]))
    assert records.numbers == 8
    assert records.visits.tolist() == [2, 3, 0, 1]
    assert records.to_explore(numbers_for(0.1, 1.1)).tolist() == [[0.5]]
    assert records.to_explore(numbers_for(0.1, 1.1, 3.1)).tolist() == [[3.5]]
    both = np.vstack([numbers_for(1.1), numbers_for(1.1, 2.1)])
    assert records.to_explore(both).tolist() == [[1.5], [2.5]]


def test_a_goal_drawn_beyond_the_known_places_is_headed_for():
    places = FarthestPoints(spacing=1.0).build(LOW, HIGH, 1)
    records = PlaceRecords(places)
    assert records.to_explore(numbers_for(3.0)).tolist() == [[3.0]], "nothing is known yet"
    records.change(places.visit(np.array([[0.0], [1.5]]), {}))
    records.visit(np.array([0]))
    assert places.roadmap.places.tolist() == [[0.0], [1.5]]
    assert records.to_explore(numbers_for(0.2, 3.0)).tolist() == [[3.0]]


def test_counts_of_places_that_have_moved_begin_anew():
    places = FarthestPoints(count=2).build(LOW, HIGH, 1)
    records = PlaceRecords(places)
    records.change(places.visit(np.array([[0.0], [1.0]]), {}))
    assert records.changes == 2
    records.visit(np.array([0, 1, 1]))
    (moved,) = places.visit(np.array([[4.0]]), {}).tolist()
    records.change(np.array([moved]))
    assert records.visits.tolist() == [0 if place == moved else 1 + place for place in (0, 1)]
    assert records.stands_since.tolist() == [3 if place == moved else 2 for place in (0, 1)]
    stays = 1 - moved
    asked = np.array([moved, moved, stays, -1, 2])
    since = np.array([2, 3, 2, 9, 9])
    assert records.have_stood(asked, since).tolist() == [False, True, True, False, False]
