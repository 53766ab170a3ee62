import numpy as np
import pytest

from coach_rl.core.errors import CoachWarning
from coach_rl.extensions.looking.data_points import DataPoint
from coach_rl.extensions.looking.inspections import InspectParameters
from coach_rl.extensions.looking.inspector import MOST_DUMPS, InspectionError, Inspector

BAD = np.array([[1.0, 2.0], [np.nan, np.inf], [1.0, -np.inf]])


def inspector(*checks, point=None, column="", **params):
    """An inspector, and the list of what it finds."""
    found = []
    params = InspectParameters(checks=checks, **params)
    point = point or DataPoint(name="batch", agent="ddpg", watch=lambda look: None)
    return Inspector(params, point, level="low", column=column, note=found.append), found


def inspect(at, **columns):
    at.inspect(
        lambda: {name.replace("__", "/"): np.asarray(each) for name, each in columns.items()}
    )


def test_statistics_by_hand():
    stats, found = inspector("stats", every=2)
    inspect(stats, a__b=[[1.0], [3.0]], flag=[True, False])
    inspect(stats, a__b=[[9.0]])  # not due
    (finding,) = found
    assert finding.scalars == {
        "inspect/batch/a/b/mean": 2.0,
        "inspect/batch/a/b/std": 1.0,
        "inspect/batch/a/b/min": 1.0,
        "inspect/batch/a/b/max": 3.0,
        "inspect/batch/flag/mean": 0.5,
        "inspect/batch/flag/std": 0.5,
        "inspect/batch/flag/min": 0.0,
        "inspect/batch/flag/max": 1.0,
    }
    assert (finding.level, finding.agent, finding.text) == ("low", "ddpg", "")


def test_inspector_staleness_counts_ages_alone():
    point = DataPoint(name="batch", watch=lambda look: None, ages=("age",))
    old, found = inspector("staleness", point=point, oldest=10, reaction="warn")
    with pytest.warns(CoachWarning):
        inspect(old, age=[10, 12], x=[100.0, 200.0])
    assert found[0].scalars == {
        "inspect/batch/age/mean": 11.0,
        "inspect/batch/age/std": 1.0,
        "inspect/batch/age/min": 10.0,
        "inspect/batch/age/max": 12.0,
        "inspect/batch/age/too_old": 1.0,
    }


def test_inspector_warns_once_and_notes_every_finding():
    nan, found = inspector("nan", reaction="warn")
    with pytest.warns(CoachWarning):
        inspect(nan, x=BAD)
    inspect(nan, x=BAD)
    assert [each.scalars["inspect/batch/x/not_finite"] for each in found] == [2.0, 2.0]
    assert not found[0].columns


@pytest.mark.filterwarnings("ignore:the inspection of")
def test_a_dump_keeps_copies_of_all_columns_and_there_are_not_too_many():
    nan, found = inspector("nan", reaction="dump", every=2)
    bad, other = BAD.copy(), np.arange(3)
    for _ in range(2 * MOST_DUMPS + 4):
        inspect(nan, x=bad, y=other)
    other += 1
    kept = [each for each in found if each.columns]
    assert len(found) == MOST_DUMPS + 2
    assert [each.name for each in kept[:2]] == ["low.batch_0", "low.batch_2"]
    assert len(kept) == MOST_DUMPS
    np.testing.assert_array_equal(kept[0].columns["y"], [0, 1, 2])


def test_inspector_column_is_inspected_alone():
    one, found = inspector("stats", column="observation")
    inspect(one, observation__x=[1.0], observation__y=[2.0], reward=[3.0])
    assert {name.split("/")[-2] for name in found[0].scalars} == {"x", "y"}


def test_what_is_not_due_is_not_even_fetched():
    stats, _ = inspector("stats", every=3)
    calls = []
    for number in range(7):
        stats.inspect(lambda number=number: calls.append(number) or {"x": np.zeros(1)})
    assert calls == [0, 3, 6]


def test_inspectors_loaded_continue():
    first, _ = inspector("stats", "shape", every=3)
    inspect(first, x=np.zeros(1))
    inspect(first, x=np.zeros(1))
    second, found = inspector("stats", "shape", every=3)
    second.load_state_dict(first.state_dict())
    inspect(second, x=np.zeros(1))
    assert not found
    with pytest.raises(InspectionError):
        inspect(second, x=np.zeros((1, 2)))
