import numpy as np
import pytest
import torch
from replay_worlds import Stream, build, same_batches

from coach_rl.core import InspectParameters, parse_inspections
from coach_rl.core.errors import (
    ConfigurationError,
    NonFiniteError,
    ParameterError,
    RunError,
    UnknownNameError,
)
from coach_rl.memories.inspection import Inspector


def filled(*inspect, ticks=10, **parameters):
    memory, stream = build(inspect=inspect, **parameters), Stream(2)
    for _ in range(ticks):
        memory.add(stream.step())
    return memory


def spoiled(*inspect, **parameters):
    """A memory in which one of two transitions has a reward that is not a number."""
    memory, stream = build(num_envs=2, inspect=inspect, **parameters), Stream(2)
    transition = stream.step()
    transition.reward[1] = np.nan
    memory.add(transition)
    return memory


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("sample:nan", [("sample", ("nan",), 1)]),
        ("sample:nan,stats@100", [("sample", ("nan",), 1), ("sample", ("stats",), 100)]),
        ("sample:stats", [("sample", ("stats",), 100)]),
        ("sample:nan,shape", [("sample", ("nan", "shape"), 1)]),
        (
            " n_step : nan @5 , stats @ 5 ; gather:shape;",
            [("n_step", ("nan", "stats"), 5), ("gather", ("shape",), 1)],
        ),
        ("sample:nan,nan", [("sample", ("nan",), 1)]),
    ],
)
def test_inspections_are_read_as_users_type_them(text, expected):
    assert parse_inspections(text) == tuple(
        InspectParameters(point=point, checks=checks, every=every)
        for point, checks, every in expected
    )


@pytest.mark.parametrize("text", ["", ";", "sample", "sample:", ":nan", "sample:nan@", "a:nan@x"])
def test_text_of_another_form_is_refused(text):
    with pytest.raises(ConfigurationError, match="is not an inspection; write POINT:CHECK"):
        parse_inspections(text)


def test_a_wrong_check_is_told_the_nearest():
    with pytest.raises(UnknownNameError, match=r"unknown inspection check 'stat'.*'stats'"):
        parse_inspections("sample:stat")
    with pytest.raises(ParameterError, match=r"got \('nans',\); did you mean 'nan'\?"):
        InspectParameters(checks=("nans",))


def test_a_wrong_point_is_told_the_nearest():
    with pytest.raises(UnknownNameError, match=r"unknown inspection point 'gathr'.*'gather'"):
        build(inspect=(InspectParameters(point="gathr"),))


def test_an_interval_of_nothing_is_refused():
    with pytest.raises(ParameterError, match="every must be int > 0, got 0"):
        parse_inspections("sample:nan@0")
    with pytest.raises(
        ParameterError,
        match=r"checks must be tuple\['nan' or 'shape' or 'stats', \.\.\.\] of length >= 1",
    ):
        InspectParameters(checks=())


@pytest.mark.parametrize("point", ["n_step", "gather", "to_device", "sample"])
def test_what_is_not_finite_is_named_with_its_place(point):
    memory = spoiled(InspectParameters(point=point, checks=("nan",), every=1))
    with pytest.raises(
        NonFiniteError, match=rf"'/rewards' is not finite in \d+ of 64 sampled rows at .*'{point}'"
    ):
        memory.sample(64)


def test_in_front_of_the_fault_nothing_is_found():
    spoiled(InspectParameters(point="positions", checks=("nan",), every=1)).sample(64)


def test_bad_rows_are_counted_once_however_many_elements_are_bad():
    batch = {"/x": torch.tensor([[1.0, 2.0], [torch.nan, torch.inf], [1.0, -torch.inf]])}
    with pytest.raises(NonFiniteError, match="'/x' is not finite in 2 of 3"):
        Inspector(InspectParameters(checks=("nan",)), "look")(batch, 3)


def test_batches_that_are_not_due_are_not_looked_at():
    memory = spoiled(InspectParameters(checks=("nan",), every=3))
    inspector = memory.sampler.units[-1]
    inspector.load_state_dict(inspector.state_dict() | {"batches": 1})
    memory.sample(64)
    memory.sample(64)
    with pytest.raises(NonFiniteError):
        memory.sample(64)


def test_a_column_that_changes_its_form_is_named():
    inspector = Inspector(InspectParameters(checks=("shape",), every=1), "look")
    inspector({"/x": torch.zeros(4, 2)}, 4)
    inspector({"/x": torch.zeros(8, 2)}, 8)  # another batch size is no change
    with pytest.raises(RunError, match=r"'/x' .* was float32 \(2,\) .* and is float32 \(3,\) now"):
        inspector({"/x": torch.zeros(4, 3)}, 4)
    with pytest.raises(RunError, match=r"was float32 \(2,\) .* and is float64 \(2,\) now"):
        inspector({"/x": torch.zeros(4, 2, dtype=torch.float64)}, 4)
    with pytest.raises(RunError, match=r"'/x' .* is absent now"):
        inspector({}, 4)


def test_statistics_by_hand():
    inspector = Inspector(InspectParameters(checks=("stats",), every=2), "look")
    inspector({"/a/b": torch.tensor([[1.0], [3.0]]), "/flag": torch.tensor([True, False])}, 2)
    assert inspector.metrics() == {
        "inspect/sample/a/b/mean": 2.0,
        "inspect/sample/a/b/std": 1.0,
        "inspect/sample/a/b/min": 1.0,
        "inspect/sample/a/b/max": 3.0,
        "inspect/sample/flag/mean": 0.5,
        "inspect/sample/flag/std": 0.5,
        "inspect/sample/flag/min": 0.0,
        "inspect/sample/flag/max": 1.0,
    }
    assert inspector.metrics() == {}  # told once
    inspector({"/a/b": torch.zeros(2, 1)}, 2)  # not due
    assert inspector.metrics() == {}


def test_the_end_shows_what_the_learner_gets_and_a_unit_shows_what_passes():
    stats = {"checks": ("stats",), "every": 1}
    memory = filled(
        InspectParameters(**stats), InspectParameters(point="n_step", **stats), n_step=2
    )
    batch = memory.sample(8)
    found = memory.metrics()
    assert found["memory/transitions"] == 20
    shown = {name.rsplit("/", 1)[0] for name in found if name.startswith("inspect/sample/")}
    assert {"inspect/sample/actions", "inspect/sample/rewards", "inspect/sample/weights"} <= shown
    assert {f"inspect/sample/observations/{key}" for key in batch.observation} <= shown
    assert "inspect/n_step/sampling/window/rewards/mean" in found
    assert "inspect/n_step/actions/mean" not in found
    assert found["inspect/sample/rewards/max"] == batch.reward.max().item()


def test_looking_changes_nothing():
    plain, looked_at = filled(), filled(*parse_inspections("sample:nan,shape,stats@1;gather:nan"))
    same_batches(plain.sample(32), looked_at.sample(32))


def test_inspectors_go_on_where_they_were_saved():
    inspect = parse_inspections("sample:stats@4,shape@2")
    memory = filled(*inspect)
    for _ in range(3):
        memory.sample(8)
    restored = filled(*inspect)
    restored.load_state_dict(memory.state_dict())
    assert restored.metrics() == memory.metrics()
    assert len(memory.metrics()) == 1  # only the number of transitions
    for each in (memory, restored):
        each.sample(8)
        assert len(each.metrics()) == 1
    same_batches(memory.sample(8), restored.sample(8))  # the fifth batch: due again
    found = memory.metrics()
    assert len(found) > 1
    assert restored.metrics() == found
