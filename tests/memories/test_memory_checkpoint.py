import pytest

from coach_rl.extensions.prioritised import PrioritisedParameters
from coach_rl.runs.checkpoint import read_checkpoint, write_checkpoint
from tests.memories.replay_worlds import Stream, build


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
