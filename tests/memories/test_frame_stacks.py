from dataclasses import replace

import numpy as np
import pytest
import torch
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from coach_rl.memories import PrioritisedParameters
from coach_rl.memories.batches import NEXT_OBSERVATIONS, OBSERVATIONS
from tests.memories.replay_worlds import Cameras, build, observed, same_batches


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10_000),
    num_rows=st.integers(1, 3),
    size=st.integers(1, 4),
    capacity=st.integers(1, 9),
    ticks=st.integers(1, 40),
    n_step=st.integers(1, 3),
    starts_full=st.booleans(),
    storage=st.sampled_from(["cpu", "device"]),
)
def test_frame_ring_stacks_equal_whole_stacks(
    seed, num_rows, size, capacity, ticks, n_step, starts_full, storage
):
    common = {
        "num_envs": num_rows,
        "observed": observed(size),
        "capacity": capacity * num_rows,
        "n_step": n_step,
    }
    whole = build(**common)
    framed = build(**common, frame_stack=("camera",), storage=storage)
    cameras = Cameras(num_rows, size, seed, starts_full=starts_full)
    for _ in range(ticks):
        transition = cameras.step(cameras.some_rows())
        whole.add(transition)
        framed.add(transition)
        if len(whole):
            same_batches(whole.sample(12), framed.sample(12))
    left, right = whole.trajectories(), framed.trajectories()
    assert left.keys() == right.keys()
    for path, values in left.items():
        np.testing.assert_array_equal(values, right[path], err_msg=path)
    kept = framed.store.kept()
    positions = np.stack([kept, kept[::-1]], axis=1)  # as of sequences
    for path in (f"{OBSERVATIONS}camera", f"{NEXT_OBSERVATIONS}camera"):
        assert torch.equal(
            whole.store.take((path,), positions)[path], framed.store.take((path,), positions)[path]
        )


@pytest.mark.parametrize("ticks", [0, 1, 3, 50])
def test_memory_restored_resumes_bit_for_bit(ticks):
    parameters = {
        "num_envs": 2,
        "observed": observed(3),
        "capacity": 14,
        "frame_stack": ("camera",),
        "prioritised": PrioritisedParameters(),
    }
    memory, cameras = build(**parameters), Cameras(2, 3, seed=ticks)
    for _ in range(ticks):
        memory.add(cameras.step(cameras.some_rows()))
    state = memory.state_dict()
    restored = build(**parameters, seed=5)
    restored.add(Cameras(2, 3, seed=9).step([0, 1]))  # something to be replaced
    restored.load_state_dict(state)
    for _ in range(30):
        transition = cameras.step(cameras.some_rows())
        for each in (memory, restored):
            each.add(transition)
        if len(memory):
            same_batches(memory.sample(12), restored.sample(12))


def test_frame_ring_cleared_midway_starts_over():
    parameters = {"num_envs": 1, "observed": observed(3), "capacity": 20}
    whole, framed = build(**parameters), build(**parameters, frame_stack=("camera",))
    cameras = Cameras(1, 3, seed=0)
    for tick in range(40):
        transition = cameras.step([0])
        for memory in (whole, framed):
            memory.add(transition)
            if tick == 17:
                memory.clear()
    same_batches(whole.sample(50), framed.sample(50))


@pytest.mark.parametrize("storage", ["cpu", "device"])
def test_frame_ring_pool_grows_with_last_frames(storage):
    parameters = {"num_envs": 1, "observed": observed(2), "capacity": 300}
    whole = build(**parameters)
    framed = build(**parameters, frame_stack=("camera",), storage=storage)
    cameras = Cameras(1, 2, seed=0)
    for _ in range(700):  # a third of them ends an episode: more than the first 64 places
        transition = cameras.step([0])
        whole.add(transition)
        framed.add(transition)
    restored = build(**parameters, frame_stack=("camera",), storage=storage)
    restored.load_state_dict(framed.state_dict())
    expected = whole.trajectories()["/next_observations/camera"]
    for memory in (framed, restored):
        np.testing.assert_array_equal(memory.trajectories()["/next_observations/camera"], expected)


def test_frame_ring_extend_stores_frames():
    parameters = {"num_envs": 1, "observed": observed(3), "capacity": 30}
    whole, framed = build(**parameters), build(**parameters, frame_stack=("camera",))
    cameras = Cameras(1, 3, seed=1)
    transitions = [cameras.step([0]) for _ in range(25)]
    for transition in transitions:
        whole.add(transition)
    columns = [framed.layout.columns(transition) for transition in transitions]
    framed.store.extend(
        0, {path: np.concatenate([each[path] for each in columns]) for path in columns[0]}
    )
    same_batches(whole.sample(60), framed.sample(60))


def test_frame_ring_stores_each_frame_once():
    space = spaces.Dict({"camera": spaces.Box(0, 255, (84, 84, 4), np.uint8)})
    sizes = [
        build(observed=space, capacity=10_000, frame_stack=keys).layout.size.host
        for keys in ((), ("camera",))
    ]
    assert sizes[0] / sizes[1] == pytest.approx(8, rel=0.01)
    framed = build(observed=observed(4), num_envs=1, capacity=50, frame_stack=("camera",))
    cameras = Cameras(1, 4, seed=0)
    for _ in range(500):
        framed.add(cameras.step([0]))
    ring = framed.store._rings["camera"]
    kept_ends = int(
        (framed.trajectories()["/terminated"] | framed.trajectories()["/truncated"]).sum()
    )
    assert ring._pool_used - len(ring._free) == kept_ends  # places are used again


@pytest.mark.parametrize(("num_rows", "size", "row_capacity"), [(1, 1, 10), (2, 3, 12), (3, 4, 7)])
def test_frame_ring_full_saves_as_many_frames_as_its_capacity(num_rows, size, row_capacity):
    memory = build(
        num_envs=num_rows,
        observed=observed(size),
        capacity=num_rows * row_capacity,
        frame_stack=("camera",),
    )
    cameras = Cameras(num_rows, size, seed=0)
    for _ in range(3 * row_capacity):
        memory.add(cameras.step(range(num_rows)))
    ring = memory.store._rings["camera"].state_dict(memory.store.counts)
    saved = int((ring["frames"].ends - ring["frames"].first).sum()) + len(ring["newest"])
    assert ring["frames"].capacity == saved  # by which the size of checkpoints is predicted


@pytest.mark.parametrize("n_step", [1, 3])
def test_frame_ring_late_truncation_equals_immediate(n_step):
    common = {"num_envs": 2, "observed": observed(3), "capacity": 24, "n_step": n_step}
    told, later = build(**common), build(**common, frame_stack=("camera",))
    cameras = Cameras(2, 3, seed=n_step)
    for tick in range(60):
        transition = cameras.step([0, 1])
        later.add(transition)
        if tick % 7 == 6:  # a gap: both rows begin anew
            transition = replace(transition, truncated=~transition.terminated)
            later.truncate(np.arange(2))
            later.truncate(np.arange(2))  # nothing is open any more
            for row in (0, 1):
                cameras.reset(row)
        told.add(transition)
        same_batches(told.sample(12), later.sample(12))
    left, right = told.trajectories(), later.trajectories()
    for path, values in left.items():
        np.testing.assert_array_equal(values, right[path], err_msg=path)
