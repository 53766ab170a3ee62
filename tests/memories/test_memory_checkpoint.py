import numpy as np
import pytest
from replay_worlds import Stream, build, same_batches

from coach_rl.core import parse_inspections
from coach_rl.experiment.checkpoint import read_checkpoint, write_checkpoint
from coach_rl.memories import PrioritisedParameters, RolloutMemory


@pytest.mark.parametrize("ticks", [0, 3, 30])
def test_a_memory_goes_through_a_checkpoint_on_disk_bit_for_bit(tmp_path, ticks):
    parameters = {
        "capacity": 24,
        "n_step": 2,
        "prioritised": PrioritisedParameters(),
        "inspect": parse_inspections("sample:nan,shape,stats@3"),
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


def test_a_rollout_goes_through_a_checkpoint_on_disk(tmp_path):
    rollout, stream = RolloutMemory(10), Stream(2)
    rollout.add(stream.step())
    write_checkpoint(tmp_path / "step_1", rollout.state_dict(), {})
    restored = RolloutMemory(10)
    restored.load_state_dict(read_checkpoint(tmp_path / "step_1").state)
    for path, values in rollout.trajectories().items():
        np.testing.assert_array_equal(values, restored.trajectories()[path], err_msg=path)
