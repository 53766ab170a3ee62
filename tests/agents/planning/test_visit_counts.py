"""Counts of visits to the surroundings of goals."""

import numpy as np

from coach_rl.agents.planning.places import VisitCounts
from coach_rl.testing import assert_same_state

LOW = np.array([-1.0, 0.0])


def test_visits_are_counted_in_cells_that_begin_at_the_lower_bounds():
    counts = VisitCounts(LOW, 0.5)
    counts.visit(np.array([[-1.0, 0.0], [-0.6, 0.4], [-0.4, 0.4]]))
    counts.visit(np.array([[-0.9, 0.1], [5.0, -3.0]]))
    asked = np.array([[-0.8, 0.3], [-0.5, 0.0], [5.1, -2.6], [0.6, 0.6]])
    assert counts.of(asked).tolist() == [3, 1, 1, 0]


def test_goals_of_single_precision_lie_in_the_same_cells_as_their_doubles():
    counts, goals = VisitCounts(np.zeros(1), 0.1), np.float32(np.arange(40) / 10)[:, None]
    counts.visit(goals)
    assert counts.of(goals.astype(np.float64)).all()


def test_saved_counts_go_on_alike():
    one, other = VisitCounts(LOW, 1.0), VisitCounts(LOW, 1.0)
    assert one.state_dict()["cells"].shape == (0, 2)
    one.visit(np.array([[0.0, 0.0], [3.0, 4.0]]))
    other.load_state_dict(one.state_dict())
    for counts in (one, other):
        counts.visit(np.array([[3.0, 4.0]]))
        assert counts.of(np.array([[3.2, 4.2], [0.2, 0.2]])).tolist() == [2, 1]
    assert_same_state(one.state_dict(), other.state_dict())
