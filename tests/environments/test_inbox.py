"""The inbox and the seeds that every simulator shares."""

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import ActionError, CheckpointError, ParameterError
from coach_rl.core.records import Directive
from coach_rl.environments.inbox import FloatInbox, Inbox, require_rows, row_seeds

BOX = spaces.Box(-1, 1, (2,), np.float32)
DICT = spaces.Dict({"b": spaces.Discrete(2), "a": BOX})
BOTH = pytest.mark.parametrize("kind", [Inbox, FloatInbox])


def inbox(kind=Inbox, space=BOX):
    box = kind(space, num_envs=3)
    box.start()
    return box


@BOTH
def test_take_returns_order_sent_and_copies(kind):
    box, late = inbox(kind), np.float32([[0.0, 0.0], [0.1, 0.1]])
    box.put(np.full((1, 2), 0.2, np.float32), np.array([2]))
    box.put(Directive(action=late), np.array([0, 1]))
    late[:] = 9
    rows, action = box.take()
    assert rows.tolist() == [2, 0, 1]
    assert action.dtype == np.float32
    np.testing.assert_array_equal(action[:, 0], np.float32([0.2, 0.0, 0.1]))
    assert not box.open.any()
    rows, action = box.take()
    assert (rows.shape, action.shape) == ((0,), (0, 2))


@pytest.mark.parametrize(("kind", "kept"), [(Inbox, np.float32), (FloatInbox, np.float64)])
def test_float_inbox_keeps_double_precision(kind, kept):
    box = inbox(kind)
    box.put(np.full((3, 2), 0.1))
    assert box.take()[1].dtype == kept
    box.put(np.zeros((3, 2), np.int64))
    assert box.take()[1].dtype == kept


@BOTH
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
def test_put_bad_rows_error(kind, rows, line):
    box = inbox(kind)
    with pytest.raises(ActionError, match=line):
        box.put(np.zeros((len(rows), 2)), np.array(rows))
    assert not box.open.any()


@BOTH
def test_put_open_rows_error(kind):
    box = inbox(kind)
    box.put(np.zeros((1, 2)), np.array([2]))
    with pytest.raises(ActionError, match=r"rows \[2\] have an open decision; call recv"):
        box.put(np.zeros((3, 2)))
    assert box.open.tolist() == [False, False, True]
    box.take()
    box.hold(np.array([1]))
    with pytest.raises(ActionError, match=r"rows \[1\] have an open decision"):
        box.put(np.zeros((3, 2)))
    box.put(np.zeros((0, 2)), np.array([]))
    assert box.take()[0].tolist() == []


@BOTH
@pytest.mark.parametrize(
    ("action", "line"),
    [
        (np.zeros((2, 2)), r"3 rows were sent \[2\] actions|shape \(3, 2\), got \(2, 2\)"),
        (np.float32(0), r"3 rows were sent \[0\] actions|shape \(3, 2\), got \(\)"),
        (np.zeros((3, 1)), "shape"),
        (np.full((3, 2), np.nan), "of row 0 lies outside"),
        ({"a": np.zeros((3, 2))}, "must be one array"),
    ],
)
def test_put_bad_actions_error(kind, action, line):
    box = inbox(kind)
    with pytest.raises(ActionError, match=line):
        box.put(action)
    assert not box.open.any()


@BOTH
def test_put_action_outside_space_error_names_row(kind):
    with pytest.raises(ActionError, match=r"of row 1 lies outside Box.*OutputFilter"):
        inbox(kind).put(np.array([[0, 0], [0, 1.01]]), np.array([2, 1]))


def test_dict_actions_follow_the_space():
    box = inbox(space=DICT)
    for row in (1, 0):
        box.put({"b": np.array([row], np.int32), "a": np.full((1, 2), row)}, np.array([row]))
    _, action = box.take()
    assert list(action) == list(DICT.spaces)
    assert (action["a"].dtype, action["b"].dtype) == (np.float32, np.int64)
    assert action["b"].tolist() == [1, 0]
    assert box.take()[1]["a"].shape == (0, 2)
    with pytest.raises(ActionError, match="needs the keys"):
        box.put({"a": np.zeros((3, 2))})
    with pytest.raises(ActionError, match=r"3 rows were sent \[1, 3\] actions"):
        box.put({"a": np.zeros((3, 2)), "b": np.zeros(1, np.int64)})


@pytest.mark.parametrize(
    ("kind", "space", "action"),
    [
        (FloatInbox, BOX, np.full((1, 2), 0.1)),
        (Inbox, DICT, {"a": np.full((1, 2), 0.1, np.float32), "b": np.array([1])}),
    ],
)
def test_open_decisions_are_saved(kind, space, action):
    box, other = inbox(kind, space), kind(space, num_envs=3)
    box.put(action, np.array([2]))
    state = box.state_dict()
    other.load_state_dict(state)
    state["rows"][:] = 0
    assert other.open.tolist() == [False, False, True]
    for here, there in zip(box.take(), other.take(), strict=True):
        for key in DICT if isinstance(here, dict) else [...]:
            np.testing.assert_array_equal(here[key], there[key], strict=True)
    other.load_state_dict(box.state_dict())
    assert not other.open.any()


def test_put_after_stop_error():
    box = Inbox(BOX, num_envs=3)
    with pytest.raises(ActionError, match="not reset yet; call reset first"):
        box.put(np.zeros((3, 2)))
    box.start()
    box.put(np.zeros((3, 2)))
    box.stop_after(ValueError("the wheels came off"))
    assert not box.is_started
    assert not box.open.any()
    with pytest.raises(ActionError, match=r"the wheels came off\); call reset first"):
        box.put(np.zeros((3, 2)))
    other = inbox()
    other.load_state_dict(box.state_dict())
    with pytest.raises(ActionError, match="saved while it had no episode; call reset first"):
        other.put(np.zeros((3, 2)))


@pytest.mark.parametrize(
    ("seed", "num_envs", "seeds"),
    [(None, 2, None), (5, 3, [5, 6, 7]), (np.int64(5), 1, [5]), (np.array([4, 2]), 2, [4, 2])],
)
def test_row_seeds(seed, num_envs, seeds):
    assert row_seeds(seed, num_envs) == seeds


@pytest.mark.parametrize(
    ("seed", "line"),
    [
        ([1, 2], "got 2 seeds for 3 rows"),
        *[(bad, "whole number of 0 or more") for bad in (-1, [1, 2, -3], [[1, 2]], 1.5, "seed")],
    ],
)
def test_row_seeds_error(seed, line):
    with pytest.raises(ParameterError, match=line):
        row_seeds(seed, 3)


def test_require_rows_error():
    require_rows(3, 3)
    with pytest.raises(CheckpointError, match="has 2 rows, this one 3; build it with as many"):
        require_rows(2, 3)
