import numpy as np

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


def test_rollout_memory_state_shares_no_memory():
    memory = filled()
    state = memory.state_dict()
    memory.columns["/rewards"][:] = -1
    restored = RolloutMemory(8)
    restored.load_state_dict(state)
    state["columns"]["/rewards"][:] = -2
    np.testing.assert_array_equal(restored.columns["/rewards"][:6], [10, 20, 30, 40, 50, 60])
