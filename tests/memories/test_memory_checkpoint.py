from copy import deepcopy

import numpy as np
import pytest

from coach_rl.extensions.testing import assert_same_state
from coach_rl.memories import PrioritisedParameters, RolloutMemory
from coach_rl.runs.checkpoint import read_checkpoint, write_checkpoint
from coach_rl.runs.packing import NOTHING_STORED
from tests.memories.replay_worlds import Cameras, Stream, build, observed, same_batches


@pytest.mark.parametrize("ticks", [0, 3, 30])
def test_checkpoint_replay_memory_round_trip(tmp_path, ticks):
    parameters = {
        "capacity": 24,
        "n_step": 2,
        "prioritised": PrioritisedParameters(),
    }
    memory, stream = build(**parameters), Stream(2)
    for _ in range(ticks):
        memory.add(stream.step(stream.some_rows()))
    if ticks:
        memory.sample(4)
    write_checkpoint(tmp_path / "step_1", {"memory": memory.state_dict()}, {})
    restored = build(**parameters, seed=7)
    restored.load_state_dict(read_checkpoint(tmp_path / "step_1").state["memory"])
    for _ in range(10):
        transition = stream.step()
        for each in (memory, restored):
            each.add(transition)
        same_batches(memory.sample(8), restored.sample(8))
        assert memory.metrics() == restored.metrics()


def test_checkpoint_rollout_round_trip(tmp_path):
    rollout, stream = RolloutMemory(10), Stream(2)
    rollout.add(stream.step())
    write_checkpoint(tmp_path / "step_1", rollout.state_dict(), {})
    restored = RolloutMemory(10)
    restored.load_state_dict(read_checkpoint(tmp_path / "step_1").state)
    for path, values in rollout.trajectories().items():
        np.testing.assert_array_equal(values, restored.trajectories()[path], err_msg=path)


MEMORIES = {
    "plain": {},
    "3-step, prioritised": {"n_step": 3, "prioritised": PrioritisedParameters()},
    "on the device": {"storage": "device"},
    "frames kept once": {
        "observed": observed(3),
        "frame_stack": ("camera",),
        "prioritised": PrioritisedParameters(),
    },
}


@pytest.mark.parametrize("kind", MEMORIES)
def test_checkpoint_any_of_several_resumes_bit_for_bit(tmp_path, kind):
    """The rings go round meanwhile, and every checkpoint shares with those before it."""
    parameters = {"num_envs": 2, "capacity": 28, **MEMORIES[kind]}
    memory = build(**parameters)
    stream = Cameras(2, 3, seed=0) if "observed" in parameters else Stream(2)
    stored, saved = NOTHING_STORED, {}
    for tick in range(60):
        memory.add(stream.step(stream.some_rows()))
        if len(memory):
            batch = memory.sample(4)
            memory.note_errors(batch.position, batch.reward)
        if tick % 4 == 0:
            path = tmp_path / f"step_{tick}"
            stored = write_checkpoint(path, memory.state_dict(), {}, earlier=stored)
            saved[path] = deepcopy((memory, stream))
    for path, (whole, stream) in saved.items():
        again = build(**parameters, seed=7)
        again.add(deepcopy(stream).step([0, 1]))  # something to be replaced
        again.load_state_dict(read_checkpoint(path).state)
        for _ in range(20):
            transition = stream.step(stream.some_rows())
            for each in (whole, again):
                each.add(transition)
            if len(whole):
                batches = whole.sample(8), again.sample(8)
                same_batches(*batches)
                for each in (whole, again):
                    each.note_errors(batches[0].position, batches[0].reward)
        assert_same_state(whole.state_dict(), again.state_dict())


@pytest.mark.parametrize("prioritised", [None, PrioritisedParameters()])
def test_checkpoint_without_memory_starts_as_built(tmp_path, prioritised):
    memory, stream = build(prioritised=prioritised), Stream(2)
    for _ in range(10):
        memory.add(stream.step())
    write_checkpoint(tmp_path / "step_1", memory.state_dict(), {}, memories=False)
    again = build(prioritised=prioritised, seed=7)
    again.load_state_dict(read_checkpoint(tmp_path / "step_1").state)
    assert len(again) == 0
    again.add(stream.step())
    assert set(again.sample(50).position.tolist()) == {0, 500}
