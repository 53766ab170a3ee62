"""Comparing saved states notices whatever differs, and names it."""

import numpy as np
import pytest
import torch

from coach_rl.extensions.testing import assert_same_state


def state(**changes):
    return {
        "weights": torch.tensor([1.0, 2.0]),
        "rows": [{"age": np.array([3, 4])}, (5, "six", None)],
        "wall_seconds": 7.0,
        **changes,
    }


def test_equal_states_pass_whatever_time_they_took():
    assert_same_state(state(), state(wall_seconds=8.0))


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"weights": torch.tensor([1.0, 2.5])}, "/weights"),
        ({"weights": torch.tensor([1.0, 2.0], dtype=torch.float64)}, "/weights"),
        ({"weights": torch.tensor([[1.0, 2.0]])}, "/weights"),
        ({"rows": [{"age": np.array([3, 4])}, (5, "seven", None)]}, "/rows/1/1"),
        ({"rows": [{"age": np.array([3, 5])}, (5, "six", None)]}, "/rows/0/age"),
        ({"more": 1}, "only one state has.*/more"),
    ],
)
def test_what_differs_is_named(changes, named):
    with pytest.raises(AssertionError, match=named):
        assert_same_state(state(), state(**changes))
