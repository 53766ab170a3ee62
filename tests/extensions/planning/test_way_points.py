"""Graphs of way-points: what is learned of edges, and shortest paths along them."""

import itertools

import numpy as np
import pytest

from coach_rl.extensions.planning.roadmap import Roadmap
from coach_rl.extensions.planning.way_points import DETOUR, WayPointGraph
from coach_rl.extensions.testing import assert_same_state


def graph(width=3, height=4, **kwargs):
    grid = Roadmap.grid(np.zeros(2), np.array([width, height]), 1.0)
    return WayPointGraph(grid, **{"forgetting": 0.5, "lowest_probability": 0.05, **kwargs})


def cheapest(of, begin, end):
    """The cost of the cheapest path, by relaxing all edges until nothing changes."""
    grid = of.roadmap
    costs = np.full(len(grid.places), np.inf)
    costs[begin] = 0.0
    for _ in grid.places:
        for first, last, length, p in zip(
            grid.begins, grid.ends, grid.lengths, of.passed, strict=True
        ):
            costs[last] = min(costs[last], costs[first] + length / p)
    return costs[end]


def test_ways_are_the_cheapest_there_are():
    ways, rng = graph(), np.random.default_rng(0)
    for _ in range(60):
        edge = rng.integers(len(ways.roadmap.begins))
        ways.note(ways.roadmap.begins[edge], ways.roadmap.ends[edge], passed=rng.random() < 0.3)
    count = len(ways.roadmap.places)
    pairs = np.array(list(itertools.product(range(count), repeat=2)))
    costs = ways.costs(pairs[:, 0], pairs[:, 1])
    after = ways.next_places(pairs[:, 0], pairs[:, 1])
    for (begin, end), cost, following in zip(pairs, costs, after, strict=True):
        assert cost == pytest.approx(cheapest(ways, begin, end))
        if begin == end:
            assert following == end
            continue
        edge = ways.roadmap.edge(begin, following)
        rest = ways.costs(np.array([following]), np.array([end]))[0]
        assert cost == pytest.approx(ways.roadmap.lengths[edge] / ways.passed[edge] + rest)


def test_a_search_doubts_what_has_just_missed_and_no_other_does():
    of = graph(retry_discount=0.5)  # places 0 to 11, four in a column
    places, targets = np.array([0, 0, 0, 11]), np.array([10, 10, 5, 11])
    assert of.next_places(places, targets).tolist() == [5, 5, 5, 11]
    missed = [((0, 5),), (), ((0, 5), (0, 1)), ((11, 10),)]
    found = of.next_places(places, targets, missed=missed)
    assert found[0] in {1, 4}
    assert found.tolist()[1:] == [5, 4, 11]
    assert of.next_places(places, targets).tolist() == [5, 5, 5, 11]
    assert (of.passed == 1).all()


@pytest.mark.parametrize(("misses", "expected"), [(1, 5), (2, 1)])
def test_each_miss_takes_a_share_of_what_is_left(misses, expected):
    """Misses of a cost of 0.5: 1.41 + 0.5 and 1.41 + 3 x 0.5 the straight way, 2 around it."""
    of = graph(retry_discount=0.5, missed=0.5)
    of.note(0, 4, passed=False)
    missed = [((0, 5),) * misses]
    found = of.next_places(np.array([0]), np.array([5]), missed=missed)
    assert found.tolist() == [expected]


def test_all_ways_to_what_was_asked_for_are_doubted_together():
    """Of the last element, which way-points don't ask for, the walk before it knows nothing."""
    grid = Roadmap.grid(np.zeros(3), np.array([3.0, 3.0, 2.0]), 1.0, moving=2)
    of = WayPointGraph(
        grid, forgetting=0.2, lowest_probability=0.02, retry_discount=0.5, requested=2
    )
    begin, middle, end = grid.nearest(np.array([[0, 0, 0], [1, 1, 1], [2, 2, 1]]) + 0.5)
    ways = [np.array([begin]), np.array([end])]
    assert grid.places[of.next_places(*ways)][:, :2].tolist() == [[1.5, 1.5]]
    found = of.next_places(*ways, missed=[((int(begin), int(middle)),)])
    assert grid.places[found][:, :2].tolist() != [[1.5, 1.5]]


@pytest.mark.parametrize(
    ("forgetting", "tries", "expected"),
    [
        (
            0.1,  # as 1 / (4 + 6): the p that it begins with counts as four tries
            (False, True, False, False, False, True, False, False),
            (4 / 5, 5 / 6, 5 / 7, 5 / 8, 5 / 9, 6 / 10, 0.9 * 0.6, 0.81 * 0.6),
        ),
        (0.5, (False, False, False, False, False, True), (0.5, 0.25, 0.125, 0.0625, 0.05, 0.525)),
    ],
    ids=["share", "never nothing"],
)
def test_p_is_the_share_of_tries_that_pass_until_the_last_ones_count_more(
    forgetting, tries, expected
):
    ways = graph(3, 1, forgetting=forgetting)
    edge, seen = ways.roadmap.edge(0, 1), []
    for passed in tries:
        ways.note(0, 1, passed=passed)
        seen.append(ways.passed[edge])
    assert seen == pytest.approx(expected)
    assert ways.tries.tolist() == [len(tries), 0, 0, 0]


def test_an_edge_begins_with_the_p_of_its_place_which_counts_as_four_tries():
    ways = graph(3, 3, forgetting=0.05)
    first, other, *_ = np.flatnonzero(ways.roadmap.ends == 4)
    begins = ways.roadmap.begins
    for _ in range(6):
        ways.note(int(begins[first]), 4, passed=False)
    assert ways.passed[other] == pytest.approx(4 / 10)  # the place's: four that passed, six missed
    ways.note(int(begins[other]), 4, passed=True)
    assert ways.passed[other] == pytest.approx((4 * 0.4 + 1) / 5)


def test_without_forgetting_nothing_is_learned_but_tries_are_counted():
    ways = graph(3, 1, forgetting=0.0)
    ways.note(0, 1, passed=False, setback=3.0)
    assert ways.costs(np.array([0]), np.array([1])).tolist() == [1.0]
    assert ways.tries.sum() == 1


def test_the_cheapest_of_several_targets_is_found_as_by_a_search_for_each():
    of, rng = graph(), np.random.default_rng(3)
    for _ in range(40):
        of.note(*rng.integers(12, size=2).tolist(), passed=False)
    places, targets = np.arange(12), np.array([0, 7, 11])
    costs = np.stack([of.costs(places, np.full(12, target)) for target in targets])
    chosen = np.array([of.cheapest(place, targets) for place in places])
    assert chosen[targets].tolist() == targets.tolist()
    assert of.costs(places, chosen) == pytest.approx(costs.min(axis=0))
    assert len(set(chosen.tolist())) == 3
    for place, target in enumerate(chosen):
        if place != target:
            of.note(place, int(of.next_places(places, chosen)[place]), passed=False)
    chosen = np.array([of.cheapest(place, targets) for place in places])
    assert of.costs(places, chosen) == pytest.approx(
        np.min([of.costs(places, np.full(12, target)) for target in targets], axis=0)
    ), "not what was found before"


def test_an_edge_costs_a_pass_and_the_misses_before_it():
    for missed, cost in ((None, 1 + 3 * 1), (10.0, 1 + 3 * 10)):
        ways = graph(3, 1, missed=missed)
        ways.note(0, 1, passed=False)
        ways.note(0, 1, passed=False)  # p is 1/4: three misses for a pass
        assert ways.costs(np.array([0]), np.array([1])).tolist() == [cost]


def test_misses_cost_the_setbacks_that_they_were_on_average():
    ways, one, other = graph(2, 1, missed=3.0), np.array([0]), np.array([1])

    def cost(p, setback):
        return pytest.approx(1 + (1 - p) / p * setback)

    ways.note(0, 1, passed=False, setback=8.0)
    assert ways.costs(one, other) == cost(0.5, 4.0), "p and setback have moved by half"
    ways.note(0, 1, passed=True, setback=8.0)
    assert ways.costs(one, other) == cost(0.75, 4.0)
    ways.note(0, 1, passed=False, setback=-20.0)
    assert ways.costs(one, other) == cost(0.375, 3.0), "-8: the way is shorter after a miss"
    ways.note(0, 1, passed=False, setback=20.0)
    assert ways.costs(one, other) == cost(0.1875, 6.0)
    for _ in range(60):
        ways.note(0, 1, passed=False, setback=np.inf)
    assert ways.costs(one, other) == cost(0.05, 3.0 / 0.05), "as an edge that can't be passed"


def test_passes_and_misses_that_tell_nothing_leave_the_cost_of_misses_as_it_was():
    """Where places have a rest, each pass misses the edges to other rests; nobody headed there."""
    grid = Roadmap.grid(np.zeros(2), np.array([3.0, 2.0]), 1.0, moving=1)
    ways = WayPointGraph(grid, forgetting=0.05, lowest_probability=0.02, requested=1)
    begin, left, right = grid.nearest(np.array([[1.5, 0.5], [0.5, 0.5], [2.5, 0.5]])).tolist()
    ways.note(begin, left, passed=False, setback=40.0)
    for _ in range(20):
        ways.note(begin, right, passed=True, came_to=right)
        ways.note(begin, right, passed=False)
    fresh = WayPointGraph(grid, forgetting=0.05, lowest_probability=0.02, requested=1)
    fresh.note(begin, left, passed=False, setback=40.0)
    kept, expected = (each.state_dict() for each in (ways, fresh))
    for name in ("setbacks", "place_setbacks"):
        assert_same_state(kept[name], expected[name])


def test_until_an_edge_is_missed_a_miss_costs_what_misses_from_the_same_place_did():
    ways = graph(3, 1)
    one, other, back = (np.array([place]) for place in (1, 2, 0))
    ways.note(1, 0, passed=False, setback=8.0)
    ways.note(1, 2, passed=False, setback=8.0)
    assert ways.costs(one, other).tolist() == [1 + 6], "moved from 4, that of the place"
    assert ways.costs(one, back).tolist() == [1 + 4]
    ways.note(2, 1, passed=False)
    assert ways.costs(other, one).tolist() == [1 + 1], "a miss that began elsewhere"
    ways = graph(2, 2)
    ways.note(0, 1, passed=False, setback=100.0)
    ways.note(3, 2, passed=False)
    detour = 2**0.5 + 2  # by way of 3; straight ahead, untried, would cost 1 + 50
    assert ways.costs(np.array([0]), np.array([2])) == pytest.approx(detour)


def test_what_has_just_missed_is_doubted_even_where_nothing_is_passed():
    """Else a row would run at a wall until its episode ends."""
    of = graph(retry_discount=0.5)
    for begin, end in zip(of.roadmap.begins.tolist(), of.roadmap.ends.tolist(), strict=True):
        for _ in range(9):
            of.note(begin, end, passed=False)
    assert (of.passed == 0.05).all()
    ways = [np.array([0]), np.array([10])]
    first = of.next_places(*ways).item()
    assert of.next_places(*ways, missed=[((0, first),)]).item() != first


@pytest.mark.parametrize("prune_after", [None, 3])
def test_an_edge_that_was_missed_so_often_in_a_row_is_pruned_until_it_is_passed(prune_after):
    """With p of 0.9 at least the straight way is never longer than the one around it."""
    of = graph(3, 3, lowest_probability=0.9, prune_after=prune_after)
    begin, middle, end = of.roadmap.nearest(np.array([[x, 0.5] for x in (0.5, 1.5, 2.5)])).tolist()
    seen = []
    for passed in (False, False, True, False, False, False, False, True):
        of.note(begin, middle, passed=passed)
        is_straight = of.next_places(np.array([begin]), np.array([end])).item() == middle
        assert of.pruned.nonzero()[0].tolist() == [of.roadmap.edge(begin, middle)] * (
            not is_straight
        )
        seen.append(is_straight)
    pruned = [False] * 5 + [True] * 2 + [False]
    assert seen == [not (each and prune_after is not None) for each in pruned]


def test_where_there_is_no_other_way_the_one_with_fewest_pruned_edges_is_taken():
    of = graph(3, 2, prune_after=1)  # places 0 and 1, 2 and 3, 4 and 5, two in a column
    for begin, end in itertools.product((2, 3), (4, 5)):
        of.note(begin, end, passed=False)
    of.note(0, 2, passed=False)
    places, targets = np.array([0, 2]), np.array([4, 4])
    assert of.next_places(places, targets).tolist() == [3, 4]
    assert of.costs(places, targets) // DETOUR == pytest.approx([1, 1])


def test_no_doubts_make_a_way_dearer_than_one_with_a_pruned_edge():
    """Straight ahead an edge is pruned, around it one was missed again and again."""
    of = graph(3, 2, prune_after=30, missed=100.0, lowest_probability=0.02, retry_discount=0.5)
    for _ in range(30):
        of.note(0, 2, passed=False)
    for end in (1, 3):
        for _ in range(29):
            of.note(0, end, passed=False)
    missed = [((0, 1),) * 16 + ((0, 3),) * 16]
    (place,) = of.next_places(np.array([0]), np.array([4]), missed=missed)
    assert of.pruned.nonzero()[0].tolist() == [of.roadmap.edge(0, 2)]
    assert place != 2


def test_coming_without_what_is_met_prunes_the_edges_to_where_it_is_met():
    grid = Roadmap.grid(np.zeros(2), np.array([3.0, 2.0]), 1.0, moving=1)
    of = WayPointGraph(grid, forgetting=0.2, lowest_probability=0.02, prune_after=2, requested=1)
    begin, plain, with_key = grid.nearest(np.array([[0.5, 0.5], [1.5, 0.5], [1.5, 1.5]])).tolist()
    for _ in range(2):
        of.note(begin, with_key, passed=True, came_to=plain)
    assert of.pruned.nonzero()[0].tolist() == [grid.edge(begin, with_key)]


def test_edges_between_places_that_stay_are_pruned_still():
    of = WayPointGraph(
        Roadmap.of_neighbours(np.array([[0.0], [1.0], [3.0]]), 2),
        forgetting=0.2,
        lowest_probability=0.02,
        prune_after=1,
    )
    for end in (1, 2):
        of.note(0, end, passed=False)
    of.change(Roadmap.of_neighbours(np.array([[0.0], [1.0], [5.0], [7.0]]), 3), np.array([2, 3]))
    assert of.pruned.nonzero()[0].tolist() == [of.roadmap.edge(0, 1)]


def test_tries_between_places_that_are_no_neighbours_teach_nothing():
    ways = graph(3, 1)
    ways.note(0, 2, passed=False)
    ways.note(1, 1, passed=False)
    assert ways.passed.tolist() == [1, 1, 1, 1]


def test_a_saved_graph_goes_on_alike():
    ways, other = graph(prune_after=1), graph(prune_after=1)
    for begin, end in ((0, 1), (0, 4), (5, 4)):
        ways.note(begin, end, passed=False, setback=4.0)
    other.next_places(np.array([0]), np.array([11]))  # what was found before is forgotten
    other.load_state_dict(ways.state_dict())
    assert_same_state(other.state_dict(), ways.state_dict())
    assert other.pruned.sum() == 3
    places = np.arange(12)
    for target in range(12):
        targets = np.full(12, target)
        np.testing.assert_array_equal(
            other.next_places(places, targets), ways.next_places(places, targets)
        )
        np.testing.assert_array_equal(other.costs(places, targets), ways.costs(places, targets))
