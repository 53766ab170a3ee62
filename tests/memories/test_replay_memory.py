import numpy as np
import pytest
import torch
from gymnasium import spaces

from coach_rl.architectures.gradient_step import named_tensors
from coach_rl.core.errors import ConfigurationError, RunError
from coach_rl.core.records import Transition
from coach_rl.core.shown_text import readable
from coach_rl.memories import replay_memory
from tests.memories.replay_worlds import Stream, build, same_batches


def test_replay_memory_batch_columns_and_dtypes():
    memory = build(num_envs=3)
    memory.add(Stream(3).step())
    batch = memory.sample(5)
    described = {
        name: (column.dtype, tuple(column.shape)) for name, column in named_tensors(batch).items()
    }
    assert described == {
        "observation/observation": (torch.float32, (5, 2)),
        "action": (torch.float32, (5, 1)),
        "reward": (torch.float32, (5,)),
        "next_observation/observation": (torch.float32, (5, 2)),
        "discount": (torch.float32, (5,)),
        "weight": (torch.float32, (5,)),
        "position": (torch.int64, (5,)),
    }
    assert (batch.weight == 1).all()


@pytest.mark.parametrize("n_step", [1, 3])
def test_replay_memory_samples_uniformly(n_step):
    stream = Stream(3, seed=1)
    memory = build(num_envs=3, capacity=30, n_step=n_step)
    for tick in range(25):
        memory.add(stream.step(np.array([0, 1, 2])[: 1 + tick % 3]))  # 25, 16 and 8 came
    kept = sorted(stream.kept(10))
    assert len(kept) == 28
    draws = 28_000
    numbers = memory.sample(draws).action[:, 0].long().numpy()
    found, counts = np.unique(numbers, return_counts=True)
    np.testing.assert_array_equal(found, kept)
    expected = draws / 28
    # chi-square with 27 degrees of freedom: beyond 55 once in 1,000 seeds; the seed is fixed
    assert ((counts - expected) ** 2 / expected).sum() < 55


def test_replay_memory_seed_sets_samples():
    memories = [build(seed=seed) for seed in (3, 3, 4)]
    for memory in memories:
        stream = Stream(2)
        for _ in range(30):
            memory.add(stream.step())
    first, second, third = (memory.sample(20).position.tolist() for memory in memories)
    assert first == second
    assert first != third


def test_replay_memory_dict_discrete_and_byte_values_keep_form():
    acted = spaces.Dict({"move": spaces.Box(-1, 1, (2,), np.float64), "grip": spaces.Discrete(3)})
    observed = spaces.Dict({"picture": spaces.Box(0, 255, (4, 4), np.uint8)})
    memory = build(num_envs=2, observed=observed, acted=acted)
    picture = np.arange(32).reshape(2, 4, 4).astype(np.uint8)
    memory.add(
        Transition(
            rows=np.array([1, 0]),
            observation={"picture": picture},
            action={"move": np.ones((2, 2)), "grip": np.array([2, 1])},
            reward=np.zeros(2),
            next_observation={"picture": picture + 1},
            terminated=np.zeros(2, bool),
            truncated=np.zeros(2, bool),
            duration=np.ones(2, np.int64),
        )
    )
    batch = memory.sample(30)
    assert batch.observation["picture"].dtype == torch.uint8
    assert batch.action_parts["move"].dtype == torch.float32
    assert batch.action_parts["grip"].dtype == torch.int64
    first = batch.action_parts["grip"] == 2
    assert 0 < first.sum() < 30
    assert (batch.observation["picture"][first].numpy() == picture[0]).all()
    assert (batch.next_observation["picture"][~first].numpy() == picture[1] + 1).all()


def test_replay_memory_no_storage_allocates_nothing():
    pictures = spaces.Dict({"observation": spaces.Box(0, 255, (84, 84, 4), np.uint8)})
    memory = build(observed=pictures, storage="none", capacity=10**7)  # 565 GB
    assert memory.layout.size == replay_memory.MemorySize(host=0, device=0)
    with pytest.raises(RunError):
        memory.add(one(0, 1))
    full = build(capacity=4)
    full.add(one(0, 1))
    memory.load_state_dict(full.state_dict())  # of which it takes nothing, whatever its shape
    assert len(memory) == 0
    with pytest.raises(RunError):
        memory.sample(1)


def test_check_size_device_memory_is_compared(monkeypatch):
    monkeypatch.setattr(replay_memory, "free_device_bytes", lambda device: 5_000)
    build(storage="device", capacity=200)  # 2 * 8 + 4 bytes each: 4,000
    with pytest.raises(ConfigurationError):
        build(storage="device", capacity=300)


def test_free_host_bytes_respects_control_group(tmp_path, monkeypatch):
    monkeypatch.setattr(replay_memory, "CGROUP", tmp_path)
    whole = replay_memory.free_host_bytes()
    (tmp_path / "memory.current").write_text("400000\n")
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.stat").write_text("anon 7\ninactive_file 50000\nactive_file 9\n")
    assert replay_memory.free_host_bytes() > whole / 2
    (tmp_path / "memory.max").write_text("1000000\n")
    assert replay_memory.free_host_bytes() == 650_000
    assert replay_memory.free_device_bytes(torch.device("cpu")) == 650_000


def test_readable_sizes_have_units():
    assert [readable(size) for size in (999, 1500, 2e6, 3.25e9, 4e12)] == [
        "999 B",
        "1.5 kB",
        "2 MB",
        "3.2 GB",
        "4,000.0 GB",
    ]


def test_layout_size_million_half_cheetah_below_300_mb():
    observed = spaces.Dict({"observation": spaces.Box(-np.inf, np.inf, (17,), np.float64)})
    memory = build(
        observed=observed, acted=spaces.Box(-1, 1, (6,), np.float32), num_envs=16, capacity=10**6
    )
    assert memory.layout.size.host < 300e6


def test_replay_memory_state_holds_stored_transitions_only():
    memory, stream = build(capacity=100_000), Stream(2)
    for _ in range(3):
        memory.add(stream.step())
    transitions = memory.state_dict()["store"]["transitions"]
    parts = [(row, len(columns["/actions"])) for row, _, columns in transitions.parts()]
    assert parts == [(0, 3), (1, 3)]
    assert transitions.capacity == 100_000  # by which the size of checkpoints is predicted


def test_replay_memory_empty_trajectories_have_no_length():
    shown = build(num_envs=2).trajectories()
    assert shown["/mask"].shape == (2, 0)
    assert shown["/observations/observation"].shape == (2, 0, 2)


@pytest.mark.gpu
@pytest.mark.parametrize("storage", ["pinned", "device", "cpu"])
def test_replay_memory_gpu_batches_equal_cpu(storage):
    memories = [
        build(capacity=40, n_step=2),
        build(capacity=40, n_step=2, storage=storage, device=torch.device("cuda")),
    ]
    stream = Stream(2)
    for _ in range(30):
        transition = stream.step()
        for memory in memories:
            memory.add(transition)
    for _ in range(5):  # page-locked buffers are used again
        cpu, gpu = (memory.sample(64) for memory in memories)
        assert all(column.is_cuda for column in named_tensors(gpu).values())
        same_batches(cpu, gpu)


def one(
    row,
    number,
    *,
    reward=0.0,
    terminated=False,
    truncated=False,
    duration=1,
    follows=True,
    extras=None,
):
    """One transition of one row, from state `number` to the next."""
    return Transition(
        rows=np.array([row]),
        observation={"observation": np.array([[row, number]], np.float64)},
        action=np.array([[number]], np.float32),
        reward=np.array([reward], np.float64),
        next_observation={"observation": np.array([[row, number + 1]], np.float64)},
        terminated=np.array([terminated]),
        truncated=np.array([truncated]),
        duration=np.array([duration]),
        follows=np.array([follows]),
        extras=extras or {},
    )
