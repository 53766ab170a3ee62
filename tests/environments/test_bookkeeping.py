"""The inbox and the seeds that every simulator shares."""

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import ActionError, CheckpointError, ParameterError
from coach_rl.environments.bookkeeping import Inbox, conformed, row_seeds

BOX = spaces.Box(-1, 1, (2,), np.float32)


def inbox():
    box = Inbox(BOX, num_envs=3)
    box.start()
    return box


def test_taken_rows_come_in_the_order_sent_with_their_actions():
    box = inbox()
    box.put(np.full((1, 2), 0.2), np.array([2]))
    box.put(np.array([[0.0, 0.0], [0.1, 0.1]]), np.array([0, 1]))
    rows, action = box.take()
    assert rows.tolist() == [2, 0, 1]
    assert action.dtype == np.float32
    np.testing.assert_array_equal(action[:, 0], np.float32([0.2, 0.0, 0.1]))
    assert box.take()[0].tolist() == []


def test_actions_are_copied():
    box, action = inbox(), np.zeros((3, 2), np.float32)
    box.put(action)
    action[:] = 1
    assert not box.take()[1].any()


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([0, 0], "name a row twice"),
        ([3], "rows go from 0 to 2"),
        ([-1], "rows go from 0 to 2"),
        ([[0]], "flat array of row numbers"),
        ([0.5], "flat array of row numbers"),
        ([True, False, True], "flat array of row numbers"),
    ],
)
def test_bad_rows(rows, line):
    box = inbox()
    with pytest.raises(ActionError, match=line):
        box.put(np.zeros((len(rows), 2)), np.array(rows))
    assert not box.open.any()


def test_no_rows_are_fine():
    box = inbox()
    box.put(np.zeros((0, 2)), np.array([]))
    rows, action = box.take()
    assert (rows.shape, action.shape) == ((0,), (0, 2))


@pytest.mark.parametrize(
    ("action", "line"),
    [
        (np.zeros((2, 2)), r"3 rows were sent \[2\] actions"),
        (np.float32(0), r"3 rows were sent \[0\] actions"),
        (np.zeros((3, 1)), "shape"),
        (np.full((3, 2), np.nan), "lies outside"),
        ({"a": np.zeros((3, 2))}, "must be one array"),
    ],
)
def test_bad_actions(action, line):
    with pytest.raises(ActionError, match=line):
        inbox().put(action)


def test_dict_actions_come_in_the_order_of_the_space():
    space = spaces.Dict({"b": spaces.Discrete(2), "a": BOX})
    given = {"b": np.zeros(1, np.int32), "a": np.zeros((1, 2))}
    action = conformed(space, given, count=1)
    assert list(action) == list(space.spaces)
    assert (action["a"].dtype, action["b"].dtype) == (np.float32, np.int64)
    with pytest.raises(ActionError, match="needs the keys"):
        conformed(space, {"a": np.zeros((1, 2))}, count=1)
    with pytest.raises(ActionError, match="2 rows were sent"):
        conformed(space, given, count=2)


def test_sent_apart_dict_actions_are_joined():
    space = spaces.Dict({"b": spaces.Discrete(2), "a": BOX})
    box = Inbox(space, num_envs=2)
    box.start()
    for row in (1, 0):
        box.put({"a": np.full((1, 2), row), "b": np.array([row])}, np.array([row]))
    assert box.take()[1]["b"].tolist() == [1, 0]
    assert box.take()[1]["a"].shape == (0, 2)


def test_stopped_inbox_refuses_with_its_line():
    box = inbox()
    box.put(np.zeros((3, 2)))
    with pytest.raises(CheckpointError, match=r"rows \[0, 1, 2\] have an open decision"):
        box.require_none_open()
    box.stop("the wheels came off; call reset first")
    box.require_none_open()
    with pytest.raises(ActionError, match="the wheels came off; call reset first"):
        box.put(np.zeros((3, 2)))


def test_row_seeds():
    assert row_seeds(None, 2) == [None, None]
    assert row_seeds(5, 3) == [5, 6, 7]
    assert row_seeds(np.int64(5), 1) == [5]
    assert row_seeds(np.array([4, 2]), 2) == [4, 2]
    with pytest.raises(ParameterError, match="2 seeds for 3 rows"):
        row_seeds([1, 2], 3)
    with pytest.raises(ParameterError, match="0 or more, got -4"):
        row_seeds(-4, 3)
