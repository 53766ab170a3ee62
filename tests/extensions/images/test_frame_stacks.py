from dataclasses import replace

import numpy as np
import pytest
from gymnasium import spaces

from coach_rl.core.errors import RunError
from tests.memories.replay_worlds import Cameras, build, observed


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


def test_frame_ring_refuses_pictures_that_are_no_stacks():
    memory = build(observed=observed(3), num_envs=1, capacity=50, frame_stack=("camera",))
    step = Cameras(1, 3, seed=0).step([0])
    colours = np.random.default_rng(0).integers(0, 256, step.observation["camera"].shape)
    after = {**step.next_observation, "camera": colours.astype(np.uint8)}
    with pytest.raises(RunError, match="under 'camera' is no stack of frames that continues"):
        memory.add(replace(step, next_observation=after))
