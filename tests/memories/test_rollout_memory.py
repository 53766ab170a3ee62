import numpy as np
import pytest

from coach_rl.core.errors import RunError
from coach_rl.core.records import Transition
from coach_rl.memories import RolloutMemory


def transition(rows, numbers, *, action=None, extras=None):
    """One transition per row whose every number is made from `numbers`."""
    numbers = np.array(numbers, np.float64)
    return Transition(
        rows=np.array(rows, np.int64),
        observation={"x": numbers[:, None].astype(np.float32), "image": numbers.astype(np.uint8)},
        action=numbers.astype(np.int64) if action is None else action,
        reward=numbers * 10,
        next_observation={
            "x": numbers[:, None].astype(np.float32) + 1,
            "image": numbers.astype(np.uint8),
        },
        terminated=numbers % 2 == 0,
        truncated=numbers % 3 == 0,
        duration=numbers.astype(np.int64) + 5,
        extras={} if extras is None else extras,
    )


def filled():
    memory = RolloutMemory(8)
    memory.add(transition([2, 0], [1, 2]))
    memory.add(transition([2], [3]))
    memory.add(transition([5, 2, 0], [4, 5, 6]))
    return memory


def test_rollout_memory_columns_keep_order():
    memory = RolloutMemory(4)
    extras = {"log_prob": np.array([0.5, 0.25], np.float32)}
    memory.add(transition([1, 0], [1, 2], extras=extras))
    memory.add(transition([1], [3], extras={"log_prob": np.array([0.75], np.float32)}))
    assert len(memory) == 3
    kept = {path: column[:3].tolist() for path, column in memory.columns.items()}
    assert kept == {
        "/rows": [1, 0, 1],
        "/observations/x": [[1.0], [2.0], [3.0]],
        "/observations/image": [1, 2, 3],
        "/next_observations/x": [[2.0], [3.0], [4.0]],
        "/next_observations/image": [1, 2, 3],
        "/actions": [1, 2, 3],
        "/rewards": [10.0, 20.0, 30.0],
        "/terminated": [False, True, False],
        "/truncated": [False, False, True],
        "/durations": [6, 7, 8],
        "/follows": [True, True, True],
        "/log_prob": [0.5, 0.25, 0.75],
    }
    assert memory.columns["/observations/x"].shape == (4, 1)


def test_rollout_memory_environment_steps_sum_durations():
    memory = filled()
    assert memory.environment_steps == 6 + 7 + 8 + 9 + 10 + 11
    memory.clear()
    assert memory.environment_steps == 0
    assert RolloutMemory(8).environment_steps == 0


def test_rollout_memory_columns_keep_first_dtype():
    columns = filled().columns
    assert columns["/observations/x"].dtype == np.float32
    assert columns["/observations/image"].dtype == np.uint8
    assert columns["/actions"].dtype == np.int64
    assert columns["/terminated"].dtype == np.bool_


def test_memory_added_values_are_copied():
    memory, given = RolloutMemory(4), transition([0], [1])
    memory.add(given)
    given.observation["x"][:] = 99
    assert memory.columns["/observations/x"][0] == 1


def test_rollout_memory_dict_action_has_column_per_part():
    memory = RolloutMemory(4)
    action = {"move": np.array([[0.5, 1.5]]), "grip": np.array([2])}
    memory.add(transition([0], [1], action=action))
    assert "/actions" not in memory.columns
    np.testing.assert_array_equal(memory.columns["/actions/move"][:1], [[0.5, 1.5]])
    np.testing.assert_array_equal(memory.columns["/actions/grip"][:1], [2])


def test_rollout_memory_full_error_adds_nothing():
    memory = RolloutMemory(3)
    memory.add(transition([0, 1], [1, 2]))
    with pytest.raises(RunError):
        memory.add(transition([0, 1], [3, 4]))
    assert len(memory) == 2  # nothing of what did not fit
    memory.add(transition([0], [3]))
    assert len(memory) == 3


def test_memory_cleared_starts_over():
    memory = filled()
    memory.clear()
    assert len(memory) == 0
    memory.add(transition([7], [9]))
    assert len(memory) == 1
    np.testing.assert_array_equal(memory.columns["/rows"][:1], [7])
    np.testing.assert_array_equal(memory.grid().index, [[0]])


def test_rollout_memory_free_slots_repeat_values():
    """Zeros would lie outside some spaces."""
    memory = RolloutMemory(4)
    memory.add(transition([], []))
    memory.add(transition([0, 1], [5, 6]))
    memory.add(transition([0], [7], extras={"late": np.array([8])}))
    assert memory.columns["/observations/image"].tolist() == [5, 6, 7, 5]
    assert memory.columns["/late"].tolist() == [0, 0, 8, 8]
    restored, partly = RolloutMemory(4), RolloutMemory(4)
    restored.load_state_dict({"length": 0, "columns": {"/rewards": np.zeros(0)}})
    partly.load_state_dict({"length": 1, "columns": {"/rewards": np.array([3.0])}})
    restored.add(transition([0], [5]))
    assert restored.columns["/rewards"].tolist() == [50.0] * 4
    assert partly.columns["/rewards"].tolist() == [3.0] * 4


def test_rollout_memory_grid_orders_and_pads_rows():
    # came in this order: row 2, 0, 2, 5, 2, 0; so row 0 is at 1, 5, row 2 at 0, 2, 4, row 5 at 3
    grid = filled().grid()
    np.testing.assert_array_equal(grid.valid, [[1, 1, 1], [1, 1, 0], [0, 1, 0]])
    np.testing.assert_array_equal(
        np.where(grid.valid, grid.index, -1), [[1, 0, 3], [5, 2, -1], [-1, 4, -1]]
    )


def test_rollout_memory_grid_holds_each_transition_once():
    rng, memory = np.random.default_rng(0), RolloutMemory(200)
    for _ in range(30):
        rows = rng.permutation(6)[: rng.integers(0, 7)]
        memory.add(transition(rows, rng.integers(0, 100, len(rows))))
    grid = memory.grid()
    np.testing.assert_array_equal(np.sort(grid.index[grid.valid]), np.arange(len(memory)))
    for index, valid in zip(grid.index.T, grid.valid.T, strict=True):
        mine = index[valid]
        assert (np.diff(mine) > 0).all()
        assert len(set(memory.columns["/rows"][mine])) == 1
        assert (index >= 0).all()
        assert (index < len(memory)).all()


def test_rollout_memory_trajectories_have_mask():
    trajectories = filled().trajectories()
    mask = trajectories["/mask"]
    np.testing.assert_array_equal(mask, [[1, 1, 0], [1, 1, 1], [1, 0, 0]])
    x = np.where(mask, trajectories["/observations/x"][:, :, 0], 0)
    np.testing.assert_array_equal(x, [[2, 6, 0], [1, 3, 5], [4, 0, 0]])
    assert trajectories["/next_observations/x"].shape == (3, 3, 1)


def test_rollout_memory_trajectories_name_agent():
    memory = RolloutMemory(4)
    memory.add(transition([0], [1], extras={"log_prob": np.array([0.5])}))
    assert set(memory.trajectories("walker")) == {
        "/observations/x",
        "/observations/image",
        "/next_observations/x",
        "/next_observations/image",
        "/agents/walker/actions",
        "/agents/walker/artifacts/log_prob",
        "/rewards",
        "/terminated",
        "/truncated",
        "/durations",
        "/follows",
        "/rows",
        "/mask",
    }
    parts = {"move": np.array([[0.5]]), "grip": np.array([2])}
    memory = RolloutMemory(4)
    memory.add(transition([0], [1], action=parts))
    assert "/agents/agent/actions/grip" in memory.trajectories()


def test_rollout_memory_restored_continues_equal():
    memory = filled()
    state = memory.state_dict()
    restored = RolloutMemory(8)
    restored.load_state_dict(state)
    for each in (memory, restored):
        each.add(transition([0], [7]))
    assert len(restored) == 7
    assert restored.columns.keys() == memory.columns.keys()
    for path, column in memory.columns.items():
        np.testing.assert_array_equal(restored.columns[path], column)
        assert restored.columns[path].dtype == column.dtype


def test_rollout_memory_state_shares_no_memory():
    memory = filled()
    state = memory.state_dict()
    memory.columns["/rewards"][:] = -1
    restored = RolloutMemory(8)
    restored.load_state_dict(state)
    state["columns"]["/rewards"][:] = -2
    np.testing.assert_array_equal(restored.columns["/rewards"][:6], [10, 20, 30, 40, 50, 60])


def test_rollout_memory_load_replaces_transitions():
    memory = filled()
    empty = RolloutMemory(8).state_dict()
    memory.load_state_dict(empty)
    assert len(memory) == 0
    memory.load_state_dict(filled().state_dict())
    assert len(memory) == 6
