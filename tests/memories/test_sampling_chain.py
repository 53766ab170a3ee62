from dataclasses import dataclass

import pytest
import torch
from replay_worlds import Stream, build, same_batches

from coach_rl.core.errors import ConfigurationError, RunError, UnknownNameError
from coach_rl.memories import SamplerChain, SamplerUnit


class Makes(SamplerUnit):
    """Makes columns of ones."""

    def __init__(self, name, *, inputs=(), outputs=(), really=None):
        self.name, self.inputs, self.outputs = name, inputs, outputs
        self._really = outputs if really is None else really

    def __call__(self, batch, size):
        return {path: torch.ones(size) for path in self._really}


def test_units_pass_columns_on_and_internal_ones_stay_inside():
    class Adds(SamplerUnit):
        name, inputs, outputs = "adds", ("/a", "/sampling/b"), ("/a", "/c")

        def __call__(self, batch, size):
            return {"/a": batch["/a"] + 1, "/c": batch["/sampling/b"] + 2}

    batch = SamplerChain([Makes("first", outputs=("/a", "/sampling/b")), Adds()])(2)
    assert {path: column.tolist() for path, column in batch.items()} == {
        "/a": [2, 2],
        "/c": [3, 3],
    }


def test_an_input_that_no_unit_writes_is_refused_when_the_chain_is_built():
    with pytest.raises(
        ConfigurationError,
        match=r"unit 'second' needs '/c', which no unit before it makes; .*/a, /b",
    ):
        SamplerChain([Makes("first", outputs=("/a", "/b")), Makes("second", inputs=("/a", "/c"))])
    with pytest.raises(ConfigurationError, match=r"needs '/a'.*made so far: nothing"):
        SamplerChain([Makes("late", inputs=("/a",)), Makes("first", outputs=("/a",))])


def test_a_prefix_stands_for_any_path_below_it():
    SamplerChain([Makes("first", outputs=("/x/a",)), Makes("second", inputs=("/x/",))])
    with pytest.raises(ConfigurationError, match="needs '/y/'"):
        SamplerChain([Makes("first", outputs=("/x/a",)), Makes("second", inputs=("/y/",))])


def test_two_units_of_one_name_are_refused():
    with pytest.raises(ConfigurationError, match="two sampler units are named 'same'"):
        SamplerChain([Makes("same"), Makes("same")])


@pytest.mark.parametrize("really", [(), ("/a", "/b"), ("/b",)])
def test_a_unit_that_makes_something_else_than_declared_is_noticed(really):
    chain = SamplerChain([Makes("liar", outputs=("/a",), really=really)])
    with pytest.raises(RunError, match=r"'liar' declares the outputs \['/a'\] and made"):
        chain(3)


@dataclass(frozen=True, kw_only=True)
class AgeParameters:
    """Hands out how old each transition is; twice as old as it really is if asked for."""

    factor: float = 1.0
    after: str = "positions"

    def build(self, *, store, rng, device):
        return Age(self.factor, store)


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
def test_users_put_units_of_their_own_anywhere(after):
    memory, stream = build(units=(AgeParameters(after=after, factor=2.0),), capacity=20), Stream(2)
    for _ in range(15):
        memory.add(stream.step())
    batch = memory.sample(50)
    rows = batch.observation["observation"][:, 0].long().numpy()
    kept = [[one["number"] for one in row] for row in stream.history]
    for age, number, row in zip(batch.extras["age"], batch.action[:, 0], rows, strict=True):
        assert age == 2 * (len(kept[row]) - 1 - kept[row].index(int(number)))
    assert memory.metrics()["age/batches"] == 1


def test_units_of_ones_own_are_saved():
    units = (AgeParameters(),)
    memory, restored = build(units=units), build(units=units)
    memory.add(Stream(2).step())
    for _ in range(3):
        memory.sample(2)
    restored.load_state_dict(memory.state_dict())
    same_batches(memory.sample(4), restored.sample(4))
    assert restored.metrics()["age/batches"] == 4


def test_a_unit_at_a_place_that_does_not_exist_is_refused():
    with pytest.raises(UnknownNameError, match=r"unknown sampler unit 'position'.*'positions'"):
        build(units=(AgeParameters(after="position"),))


def test_a_unit_in_front_of_what_it_needs_is_refused():
    @dataclass(frozen=True)
    class Early:
        after: str = "positions"

        def build(self, *, store, rng, device):
            return Makes("early", inputs=("/actions",))

    with pytest.raises(ConfigurationError, match="unit 'early' needs '/actions'"):
        build(units=(Early(),))
