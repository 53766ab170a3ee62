from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch

from coach_rl.core.saved import Saved, SavedAttribute


class Box(Saved):
    """One saved value."""

    SAVED: Any = ("_value",)

    def __init__(self, value: Any) -> None:
        self._value = value

    @property
    def value(self) -> Any:
        return self._value


class Varying(Box):
    SAVED = (SavedAttribute("_value", varies=True),)


class Optional(Saved):
    SAVED = (SavedAttribute("part", optional=True),)

    def __init__(self, part: Any) -> None:
        self.part = part


class Inline(Saved):
    SAVED = (SavedAttribute("part", inline=True), "steps")

    def __init__(self, part: Any, steps: int = 0) -> None:
        self.part, self.steps = part, steps


def linear() -> torch.nn.Linear:
    return torch.nn.Linear(2, 1)


def adam() -> torch.optim.Adam:
    optimiser = torch.optim.Adam([torch.nn.Parameter(torch.ones(3))])
    optimiser.param_groups[0]["params"][0].grad = torch.ones(3)
    optimiser.step()
    return optimiser


def fresh_adam() -> torch.optim.Adam:
    return torch.optim.Adam([torch.nn.Parameter(torch.zeros(3))])


def adam_values(optimiser: torch.optim.Adam) -> list[Any]:
    (state,) = optimiser.state_dict()["state"].values()
    return [float(state["step"]), state["exp_avg"].tolist()]


def tensor_generator(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


VALUES: dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[Any], Any]]] = {
    "number": (lambda: 3, lambda: 0, lambda v: v),
    "text": (lambda: "a", lambda: "", lambda v: v),
    "None": (lambda: None, lambda: 1.0, lambda v: v),
    "what was None": (lambda: {"a": 1}, lambda: None, lambda v: v),
    "array": (lambda: np.arange(3), lambda: np.zeros(3, np.int64), lambda v: v.tolist()),
    "tensor": (lambda: torch.ones(2), lambda: torch.zeros(2), lambda v: v.tolist()),
    "parameter": (
        lambda: torch.nn.Parameter(torch.ones(2)),
        lambda: torch.nn.Parameter(torch.zeros(2)),
        lambda v: v.tolist(),
    ),
    "generator": (
        lambda: np.random.default_rng(1),
        lambda: np.random.default_rng(2),
        lambda v: v.bit_generator.state,
    ),
    "tensor generator": (
        lambda: tensor_generator(1),
        lambda: tensor_generator(2),
        lambda v: v.get_state().tolist(),
    ),
    "module": (linear, linear, lambda v: v.weight.tolist()),
    "optimiser": (adam, fresh_adam, adam_values),
    "part": (lambda: Box(1), lambda: Box(0), lambda v: v.value),
    "dict": (
        lambda: {"a": np.ones(2), "b": Box(1)},
        lambda: {"a": np.zeros(2), "b": Box(0)},
        lambda v: (v["a"].tolist(), v["b"].value),
    ),
    "list": (
        lambda: [np.random.default_rng(1), 5],
        lambda: [np.random.default_rng(2), 4],
        lambda v: (v[0].bit_generator.state, v[1]),
    ),
}
"""What is saved, what it is loaded into, and what is compared."""


@pytest.mark.parametrize("kind", VALUES)
def test_saved_value_of_each_kind_is_restored(kind):
    make, other, seen = VALUES[kind]
    saved, loaded = Box(make()), Box(other())
    loaded.load_state_dict(saved.state_dict())
    assert seen(loaded.value) == seen(saved.value)


@pytest.mark.parametrize("kind", ["array", "tensor", "parameter", "generator", "module", "part"])
def test_loading_fills_the_value_that_is_there(kind):
    make, other, _ = VALUES[kind]
    loaded = Box(held := other())
    loaded.load_state_dict(Box(make()).state_dict())
    assert loaded.value is held


WRITES: dict[str, tuple[Callable[[], Any], Callable[[], Any], Callable[[Any], Any]]] = {
    "array": (lambda: np.zeros(2), lambda: np.zeros(2), lambda v: v.fill(7)),
    "tensor": (lambda: torch.zeros(2), lambda: torch.zeros(2), lambda v: v.fill_(7)),
    "module": (linear, linear, lambda v: v.weight.data.fill_(7)),
    "optimiser": (adam, fresh_adam, lambda v: adam_state(v)["exp_avg"].fill_(7)),
    "dict": (lambda: {"a": np.zeros(2)}, lambda: None, lambda v: v["a"].fill(7)),
    "list": (lambda: [np.zeros(2)], lambda: None, lambda v: v[0].fill(7)),
}
"""What is saved, what it is loaded into, and a change of it."""


def adam_state(optimiser: torch.optim.Adam) -> dict[str, Any]:
    (state,) = optimiser.state.values()
    return dict(state)


@pytest.mark.parametrize("kind", WRITES)
def test_state_shares_no_memory_with_either_object(kind):
    make, other, change = WRITES[kind]
    saved, loaded = Box(make()), Box(other())
    state = saved.state_dict()
    before = repr(state)
    loaded.load_state_dict(state)
    change(saved.value)
    change(loaded.value)
    assert repr(state) == before


@pytest.mark.parametrize(
    ("now", "saved"),
    [
        (np.zeros(3), np.arange(2)),
        ({}, {"a": 1}),
        ({"a": 1}, {}),
        ([], ["x", "y"]),
    ],
)
def test_varying_value_is_replaced_by_one_of_another_form(now, saved):
    loaded = Varying(now)
    loaded.load_state_dict(Box(saved).state_dict())
    assert repr(loaded.value) == repr(saved)


@pytest.mark.parametrize(
    ("saved", "now", "expected"),
    [
        (None, None, None),
        (None, 2.0, None),
        (3.0, None, 3.0),
        (Box(1), None, None),  # the parameters here have no such part
    ],
)
def test_optional_value_may_be_none_on_either_side(saved, now, expected):
    state = Optional(saved).state_dict()
    assert ("part" in state) == (saved is not None)
    loaded = Optional(now)
    loaded.load_state_dict(state)
    assert loaded.part == expected


@pytest.mark.parametrize(
    ("saved", "now"), [(Box(1), Box(0)), ({"value": 1}, {"value": 0}), (None, None)]
)
def test_inline_part_has_its_keys_among_those_of_its_owner(saved, now):
    state = Inline(saved, steps=5).state_dict()
    assert state == ({} if saved is None else {"value": 1}) | {"steps": 5}
    loaded = Inline(now)
    loaded.load_state_dict(state)
    assert loaded.state_dict() == state
    assert (loaded.part is None) == (saved is None)


def test_attributes_of_bases_are_saved_first_and_once():
    class More(Box):
        SAVED = ("more", "_value")
        more = 2

    assert list(More(1).state_dict().items()) == [("value", 1), ("more", 2)]


def test_key_may_differ_from_the_name():
    class Keyed(Box):
        SAVED = (SavedAttribute("_value", key="other"),)

    assert Keyed(1).state_dict() == {"other": 1}


def test_frozen_dataclass_is_filled():
    @dataclass(frozen=True)
    class Frozen(Saved):
        SAVED = ("values",)
        values: Any

    loaded = Frozen(np.zeros(2))
    loaded.load_state_dict({"values": np.ones(2)})
    assert loaded.values.tolist() == [1, 1]


def test_note_loaded_finds_all_attributes_loaded():
    class Derived(Box):
        doubled = 0

        def note_loaded(self) -> None:
            self.doubled = 2 * self.value

    loaded = Derived(0)
    loaded.load_state_dict({"value": 4})
    assert loaded.doubled == 8


def test_nothing_listed_is_an_empty_state():
    empty = Saved()
    assert empty.state_dict() == {}
    empty.load_state_dict({})
