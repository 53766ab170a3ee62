"""The inbox and the seeds that every simulator shares."""

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import ActionError
from coach_rl.core.records import Directive
from coach_rl.environments.inbox import FloatInbox, Inbox, row_seeds

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
def test_put_open_rows_error(kind):
    box = inbox(kind)
    box.put(np.zeros((1, 2)), np.array([2]))
    with pytest.raises(ActionError):
        box.put(np.zeros((3, 2)))
    assert box.open.tolist() == [False, False, True]
    box.take()
    box.hold(np.array([1]))
    with pytest.raises(ActionError):
        box.put(np.zeros((3, 2)))
    box.put(np.zeros((0, 2)), np.array([]))
    assert box.take()[0].tolist() == []


def test_dict_actions_follow_the_space():
    box = inbox(space=DICT)
    for row in (1, 0):
        box.put({"b": np.array([row], np.int32), "a": np.full((1, 2), row)}, np.array([row]))
    _, action = box.take()
    assert list(action) == list(DICT.spaces)
    assert (action["a"].dtype, action["b"].dtype) == (np.float32, np.int64)
    assert action["b"].tolist() == [1, 0]
    assert box.take()[1]["a"].shape == (0, 2)


def test_stop_drops_open_decisions():
    box = inbox()
    box.put(np.zeros((3, 2)))
    box.stop_after(ValueError("the wheels came off"))
    assert not box.is_started
    assert not box.open.any()


@pytest.mark.parametrize(
    ("seed", "num_envs", "seeds"),
    [(None, 2, None), (5, 3, [5, 6, 7]), (np.int64(5), 1, [5]), (np.array([4, 2]), 2, [4, 2])],
)
def test_row_seeds(seed, num_envs, seeds):
    assert row_seeds(seed, num_envs) == seeds
