from dataclasses import dataclass

import pytest
import torch

from coach_rl.memories import SamplerChain, SamplerUnit
from tests.memories.replay_worlds import Stream, build


class Makes(SamplerUnit):
    """Makes columns of ones."""

    def __init__(self, name, *, inputs=(), outputs=(), really=None):
        self.name, self.inputs, self.outputs = name, inputs, outputs
        self._really = outputs if really is None else really

    def __call__(self, batch, size):
        return {path: torch.ones(size) for path in self._really}


def test_sampler_chain_internal_columns_are_hidden():
    class Adds(SamplerUnit):
        name, inputs, outputs = "adds", ("/a", "/sampling/b"), ("/a", "/c")

        def __call__(self, batch, size):
            return {"/a": batch["/a"] + 1, "/c": batch["/sampling/b"] + 2}

    batch = SamplerChain([Makes("first", outputs=("/a", "/sampling/b")), Adds()])(2)
    assert {path: column.tolist() for path, column in batch.items()} == {
        "/a": [2, 2],
        "/c": [3, 3],
    }


def test_sampler_chain_prefix_matches_paths():
    SamplerChain([Makes("first", outputs=("/x/a",)), Makes("second", inputs=("/x/",))])


@dataclass(frozen=True, kw_only=True)
class AgeParameters:
    """Hands out how old each transition is; twice as old as it really is if asked for."""

    factor: float = 1.0
    after: str = "positions"

    def build(self, context):
        return Age(self.factor, context.store)


class Age(SamplerUnit):
    """Steps since, counted by batches as well."""

    SAVED = ("batches",)
    name, inputs, outputs = "age", ("/positions",), ("/age",)

    def __init__(self, factor, store):
        self._factor, self._store, self.batches = factor, store, 0

    def __call__(self, batch, size):
        self.batches += 1
        positions = batch["/positions"].numpy()
        rows = self._store.rows_of(positions)
        ages = self._store.counts[rows] - 1 - self._store.steps_of(positions)
        return {"/age": torch.from_numpy(ages * self._factor)}

    def metrics(self):
        return {"age/batches": float(self.batches)}


@pytest.mark.parametrize("after", ["positions", "n_step", "gather", "to_device", "sample"])
def test_sampler_chain_custom_unit_at_any_place(after):
    memory, stream = build(units=(AgeParameters(after=after, factor=2.0),), capacity=20), Stream(2)
    for _ in range(15):
        memory.add(stream.step())
    batch = memory.sample(50)
    rows = batch.observation["observation"][:, 0].long().numpy()
    kept = [[one["number"] for one in row] for row in stream.history]
    for age, number, row in zip(batch.extras["age"], batch.action[:, 0], rows, strict=True):
        assert age == 2 * (len(kept[row]) - 1 - kept[row].index(int(number)))
    assert memory.metrics()["age/batches"] == 1


class Notes(SamplerUnit):
    """Draws nothing; notes what the memory is given."""

    name = "notes"

    def __init__(self):
        self.added_steps, self.errors, self.is_cleared = 0, [], False

    def __call__(self, batch, size):
        return {}

    def added(self, positions, environment_steps):
        self.added_steps += environment_steps

    def note_errors(self, positions, errors):
        self.errors += errors.tolist()

    def as_shown(self, observation):
        return {key: values + 1 for key, values in observation.items()}

    def clear(self):
        self.is_cleared = True


@dataclass(frozen=True, kw_only=True)
class NotesParameters:
    after: str = "positions"

    def build(self, context):
        return Notes()


def test_sampler_unit_is_given_additions_errors_and_removals():
    memory, stream = build(units=(NotesParameters(),)), Stream(2, seed=1)
    notes = memory.sampler.by_name["notes"]
    steps = 0
    for _ in range(5):
        transition = stream.step([0, 1])
        memory.add(transition)
        steps += int(transition.duration.sum())
    batch = memory.sample(4)
    assert memory.is_prioritised
    memory.note_errors(batch.position, torch.tensor([1.0, -2.0, 0.5, 0.0]))
    memory.clear()
    assert (notes.added_steps, notes.errors) == (steps, [1.0, -2.0, 0.5, 0.0])
    assert notes.is_cleared
    assert memory.as_shown({"x": torch.zeros(1)}) == {"x": torch.ones(1)}
