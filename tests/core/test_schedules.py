import pytest

from coach_rl.core.clock import (
    Clock,
    ConstantSchedule,
    ExponentialSchedule,
    LinearSchedule,
    PiecewiseSchedule,
)
from coach_rl.core.errors import ParameterError
from coach_rl.core.steps import EnvironmentSteps


def at(steps, planned=0):
    return Clock(environment_steps=steps, planned=EnvironmentSteps(planned))


def test_a_constant_never_changes():
    schedule = ConstantSchedule(value=0.3)
    assert [schedule(at(steps, 10)) for steps in (0, 5, 99)] == [0.3, 0.3, 0.3]


def test_a_line_goes_from_start_to_end_and_stays_there():
    schedule = LinearSchedule(start=1.0, end=0.2, over=EnvironmentSteps(400))
    values = [schedule(at(steps, 10_000)) for steps in (0, 100, 200, 400, 4000)]
    assert values == pytest.approx([1.0, 0.8, 0.6, 0.2, 0.2], abs=1e-12)


def test_a_line_without_length_spans_the_planned_training_whatever_it_is():
    schedule = LinearSchedule(start=2.0, end=0.0)
    assert schedule(at(250, planned=1000)) == 1.5
    assert schedule(at(250, planned=500)) == 1.0
    assert schedule(at(600, planned=500)) == 0.0


def test_a_line_over_an_unplanned_training_stays_at_its_start():
    assert LinearSchedule(start=2.0, end=0.0)(at(250, planned=0)) == 2.0


def test_a_line_may_rise():
    assert LinearSchedule(start=0.0, end=3.0, over=EnvironmentSteps(3))(at(2)) == pytest.approx(2)


def test_a_decay_multiplies_at_every_step_and_stops_at_its_floor():
    schedule = ExponentialSchedule(start=8.0, end=0.9, decay=0.5)
    assert [schedule(at(steps)) for steps in (0, 1, 2, 3, 4, 100)] == [8, 4, 2, 1, 0.9, 0.9]


def test_points_are_joined_by_lines_and_the_ends_go_on():
    schedule = PiecewiseSchedule(points=((10, 1.0), (20, 3.0), (40, -1.0)))
    values = {0: 1.0, 10: 1.0, 15: 2.0, 20: 3.0, 25: 2.0, 40: -1.0, 1000: -1.0}
    assert {steps: schedule(at(steps)) for steps in values} == values


def test_a_single_point_is_a_constant():
    schedule = PiecewiseSchedule(points=((10, 7.0),))
    assert [schedule(at(steps)) for steps in (0, 10, 20)] == [7.0, 7.0, 7.0]


def test_the_value_depends_on_progress_and_not_on_how_often_it_is_asked():
    schedule, clock = LinearSchedule(start=1.0, end=0.0, over=EnvironmentSteps(10)), at(5)
    assert {schedule(clock) for _ in range(5)} == {0.5}


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (
            lambda: LinearSchedule(start=1, end=0, over=EnvironmentSteps(0)),
            r"over must be EnvironmentSteps .*Hours > 0 \| None",
        ),
        (
            lambda: ExponentialSchedule(start=1, end=0, decay=0.0),
            r"decay must be float in \(0, 1\]",
        ),
        (lambda: ExponentialSchedule(start=1, end=0, decay=1.1), "got 1.1"),
        (lambda: PiecewiseSchedule(points=()), r"strictly rising steps, got \[\]"),
        (lambda: PiecewiseSchedule(points=((5, 1.0), (5, 2.0))), r"got \[5, 5\]"),
        (lambda: PiecewiseSchedule(points=((9, 1.0), (5, 2.0))), r"got \[9, 5\]"),
    ],
)
def test_a_schedule_that_makes_no_sense_is_refused(build, message):
    with pytest.raises(ParameterError, match=message):
        build()
