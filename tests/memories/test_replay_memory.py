import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from coach_rl.architectures.gradient_step import mapped, named_tensors
from coach_rl.core.errors import (
    ConfigurationError,
    RunError,
)
from coach_rl.core.records import Transition
from coach_rl.core.shown_text import readable
from coach_rl.extensions.testing import assert_same_state
from coach_rl.memories import PrioritisedParameters, replay_memory
from tests.memories.replay_worlds import Stream, build, same_batches


def n_step_by_hand(history, number, n_step, discount, by_duration=False):
    """Reward, discount and last state's number, one transition after the other."""
    place = next(i for i, one in enumerate(history) if one["number"] == number)
    total, power = 0.0, 1.0
    for one in history[place : place + n_step]:
        total += power * one["reward"]
        power *= discount ** (one["duration"] if by_duration else 1)
        if one["terminated"] or one["truncated"]:
            break
    return total, 0.0 if one["terminated"] else power, one["number"] + 1


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    num_rows=st.integers(1, 4),
    capacity=st.integers(1, 12),
    ticks=st.integers(1, 40),
    n_step=st.integers(1, 4),
    by_duration=st.booleans(),
    storage=st.sampled_from(["cpu", "device"]),
)
def test_replay_memory_batches_equal_list_of_transitions(
    seed, num_rows, capacity, ticks, n_step, by_duration, storage
):
    stream = Stream(num_rows, seed)
    memory = build(
        num_envs=num_rows,
        capacity=capacity * num_rows,
        n_step=n_step,
        discount_by_duration=by_duration,
        storage=storage,
    )
    for _ in range(ticks):
        memory.add(stream.step(stream.some_rows()))
    kept = stream.kept(capacity)
    assert len(memory) == len(kept)
    if not kept:
        return
    batch = mapped(np.asarray, memory.sample(64))
    for index in range(64):
        row, number = batch.observation["observation"][index].astype(int)
        assert number in kept
        assert batch.action[index, 0] == number
        reward, discount, last = n_step_by_hand(
            stream.history[row], number, n_step, 0.5, by_duration
        )
        assert batch.reward[index] == pytest.approx(reward, rel=1e-5, abs=1e-6)
        assert batch.discount[index] == pytest.approx(discount)
        np.testing.assert_array_equal(batch.next_observation["observation"][index], [row, last])


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


def test_n_step_returns_by_hand():
    # one row, gamma 1/2, rewards 1, 2, 4, 8 | 16, 32; the fourth truncates
    memory = build(num_envs=1, n_step=3, discount=0.5)
    for number, reward in enumerate([1, 2, 4, 8, 16, 32]):
        memory.add(one(0, number, reward=reward, truncated=number == 3))
    seen = {}
    batch = memory.sample(200)
    for index in range(200):
        number = int(batch.observation["observation"][index, 1])
        seen[number] = (
            batch.reward[index].item(),
            batch.discount[index].item(),
            batch.next_observation["observation"][index, 1].item(),
        )
    assert seen == {
        0: (1 + 1 + 1, 1 / 8, 3),  # 1 + 2/2 + 4/4, then the value of state 3
        1: (2 + 2 + 2, 1 / 8, 4),
        2: (4 + 4, 1 / 4, 4),  # the truncation ends it; its true next state is bootstrapped
        3: (8, 1 / 2, 4),
        4: (16 + 16, 1 / 4, 6),  # the newest transition ends it
        5: (32, 1 / 2, 6),
    }


def test_n_step_returns_gap_stops_window():
    # as above, but between the states 2 and 3 a goal moved, or something was left out
    memory = build(num_envs=1, n_step=3, discount=0.5)
    for number, reward in enumerate([1, 2, 4, 8, 16, 32]):
        memory.add(one(0, number, reward=reward, follows=number != 3))
    restored = build(num_envs=1, n_step=3, discount=0.5)
    restored.load_state_dict(memory.state_dict())
    for each in (memory, restored):
        batch = each.sample(200)
        columns = (
            batch.observation["observation"][:, 1].int(),
            batch.reward,
            batch.discount,
            batch.next_observation["observation"][:, 1],
        )
        assert set(zip(*(column.tolist() for column in columns), strict=True)) == {
            (0, 1 + 1 + 1, 1 / 8, 3),
            (1, 2 + 2, 1 / 4, 3),
            (2, 4, 1 / 2, 3),
            (3, 8 + 8 + 8, 1 / 8, 6),
            (4, 16 + 16, 1 / 4, 6),
            (5, 32, 1 / 2, 6),
        }


def test_n_step_returns_termination_wins_over_truncation():
    memory = build(num_envs=1, n_step=2, discount=0.5)
    memory.add(one(0, 0, reward=1.0))
    memory.add(one(0, 1, reward=2.0, terminated=True, truncated=True))
    batch = memory.sample(50)
    assert set(batch.discount.tolist()) == {0.0}
    assert set(batch.reward.tolist()) == {2.0}  # 1 + 2/2, and 2


def test_n_step_returns_discount_by_duration():
    memory = build(num_envs=1, discount=0.5, discount_by_duration=True)
    memory.add(one(0, 0, duration=3))
    assert memory.sample(1).discount.tolist() == [1 / 8]


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


def test_replay_memory_batch_is_copy():
    memory = build(num_envs=1, capacity=1)
    memory.add(one(0, 7))
    for column in named_tensors(memory.sample(4)).values():
        column.zero_()
    assert memory.sample(1).action.item() == 7


def test_memory_added_values_are_copied():
    memory, given_transition = build(num_envs=1), one(0, 7)
    memory.add(given_transition)
    given_transition.observation["observation"][:] = 99
    assert memory.sample(1).observation["observation"].tolist() == [[0, 7]]


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


def test_replay_memory_extras_are_sampled():
    memory = build(num_envs=1, extras=("log_prob",))
    memory.add(one(0, 1, extras={"log_prob": np.array([0.25]), "value": np.array([3.0])}))
    batch = memory.sample(2)
    assert batch.extras["log_prob"].tolist() == [0.25, 0.25]
    assert "value" not in batch.extras
    restored = build(num_envs=1, extras=("log_prob",))
    restored.load_state_dict(memory.state_dict())
    restored.add(one(0, 1, extras={"log_prob": np.array([0.5])}))
    assert set(restored.sample(30).extras["log_prob"].tolist()) == {0.25, 0.5}


@pytest.mark.parametrize("prioritised", [None, PrioritisedParameters()])
def test_memory_cleared_starts_over(prioritised):
    stream, memory = Stream(2), build(capacity=6, prioritised=prioritised)
    for _ in range(10):
        memory.add(stream.step())
    memory.clear()
    assert len(memory) == 0
    with pytest.raises(RunError):
        memory.sample(1)
    memory.add(one(1, 5, reward=2.0))
    assert len(memory) == 1
    assert memory.sample(3).observation["observation"].tolist() == [[1, 5]] * 3


def test_replay_memory_capacity_is_shared_by_rows():
    stream, memory = Stream(4), build(num_envs=4, capacity=11)
    for _ in range(10):
        memory.add(stream.step())
    assert len(memory) == 8  # 11 // 4 = 2 each


def test_replay_memory_device_storage_samples_equal():
    memories = [build(storage=storage, n_step=2, capacity=9) for storage in ("cpu", "device")]
    for memory in memories:
        stream = Stream(2)
        for _ in range(12):
            memory.add(stream.step(stream.some_rows()))
    same_batches(memories[0].sample(40), memories[1].sample(40))


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


VARIANTS = {
    "plain": {},
    "n_step": {"n_step": 3, "discount_by_duration": True},
    "prioritised": {"prioritised": PrioritisedParameters()},
    "device": {"storage": "device"},
}


@pytest.mark.parametrize("name", VARIANTS)
@pytest.mark.parametrize("ticks", [0, 1, 4, 33])
def test_memory_restored_resumes_bit_for_bit(name, ticks):
    # 10 a row: with 33 ticks the rings have gone round; an episode is open in most rows
    memory, stream = build(num_envs=3, capacity=30, **VARIANTS[name]), Stream(3, seed=ticks)
    for _ in range(ticks):
        memory.add(stream.step(stream.some_rows()))
        if len(memory):
            batch = memory.sample(4)
            memory.note_errors(batch.position, batch.reward)
    state = memory.state_dict()
    restored = build(num_envs=3, capacity=30, seed=9, **VARIANTS[name])
    restored.add(Stream(3).step())  # something to be replaced
    restored.load_state_dict(state)
    for _ in range(15):
        transition = stream.step(stream.some_rows())
        for each in (memory, restored):
            each.add(transition)
        assert len(memory) == len(restored)
        if len(memory):
            batches = [each.sample(16) for each in (memory, restored)]
            same_batches(*batches)
            for each in (memory, restored):
                each.note_errors(batches[0].position, batches[0].reward)
    left, right = memory.trajectories(), restored.trajectories()
    assert left.keys() == right.keys()
    for path, values in left.items():
        np.testing.assert_array_equal(values, right[path], err_msg=path)


def test_replay_memory_state_holds_stored_transitions_only():
    memory, stream = build(capacity=100_000), Stream(2)
    for _ in range(3):
        memory.add(stream.step())
    transitions = memory.state_dict()["store"]["transitions"]
    parts = [(row, len(columns["/actions"])) for row, _, columns in transitions.parts()]
    assert parts == [(0, 3), (1, 3)]


def test_replay_memory_state_is_unchanged_by_adds():
    memory, stream = build(capacity=20), Stream(2)
    for _ in range(6):
        memory.add(stream.step())
    state = memory.state_dict()
    before = memory.sample(5)
    for _ in range(4):
        memory.add(stream.step())
    restored = build(capacity=20)
    restored.load_state_dict(state)
    same_batches(restored.sample(5), before)


def test_replay_memory_loads_own_state():
    memory, stream = build(capacity=20), Stream(2)
    for _ in range(6):
        memory.add(stream.step())
    state = memory.state_dict()
    before = memory.sample(5)
    memory.add(stream.step())
    memory.load_state_dict(state)
    assert len(memory) == 12
    same_batches(memory.sample(5), before)


def test_replay_memory_trajectories_are_oldest_first():
    memory, stream = build(num_envs=3, capacity=12), Stream(3, seed=2)
    for tick in range(9):
        memory.add(stream.step([0, 1][: 1 + tick % 2]))  # 9 and 4 came, none of row 2
    shown = memory.trajectories("walker")
    assert set(shown) == {
        "/observations/observation",
        "/next_observations/observation",
        "/agents/walker/actions",
        "/rewards",
        "/terminated",
        "/truncated",
        "/durations",
        "/rows",
        "/mask",
    }
    np.testing.assert_array_equal(shown["/mask"], [[1] * 4, [1] * 4, [0] * 4])
    for row in range(2):
        kept = stream.history[row][-4:]
        np.testing.assert_array_equal(
            shown["/agents/walker/actions"][row, :, 0], [each["number"] for each in kept]
        )
        np.testing.assert_array_equal(shown["/rewards"][row], [each["reward"] for each in kept])
        np.testing.assert_array_equal(shown["/durations"][row], [each["duration"] for each in kept])
    assert shown["/observations/observation"].shape == (3, 4, 2)
    assert "/agents/agent/actions" in memory.trajectories()


def test_replay_memory_empty_trajectories_have_no_length():
    shown = build(num_envs=2).trajectories()
    assert shown["/mask"].shape == (2, 0)
    assert shown["/observations/observation"].shape == (2, 0, 2)


def test_ring_store_extend_equals_single_adds():
    stream, single, bulk = Stream(1, seed=5), build(num_envs=1, capacity=20), None
    bulk = build(num_envs=1, capacity=20)
    for length in (3, 12, 20, 1, 7):
        transitions = [stream.step() for _ in range(length)]
        for transition in transitions:
            single.add(transition)
        columns = [bulk.layout.columns(transition) for transition in transitions]
        bulk.store.extend(
            0, {path: np.concatenate([each[path] for each in columns]) for path in columns[0]}
        )
        assert_same_state(single.state_dict()["store"], bulk.state_dict()["store"])
        for left, right in zip(
            *(each.store.episodes_of(each.store.kept()) for each in (single, bulk)), strict=True
        ):
            np.testing.assert_array_equal(left, right)
        same_batches(single.sample(50), bulk.sample(50))


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
