import pytest

import coach_rl as rl
from coach_rl.core.clock import Clock


def at(steps, planned=0):
    return Clock(environment_steps=steps, planned=rl.EnvironmentSteps(planned))


POINTS = ((10, 1.0), (20, 3.0), (40, -1.0))
LINE = rl.LinearSchedule(start=1.0, end=0.2, over=rl.EnvironmentSteps(400))


@pytest.mark.parametrize(
    ("schedule", "planned", "values"),
    [
        (rl.ConstantSchedule(value=0.3), 10, {0: 0.3, 5: 0.3, 99: 0.3}),
        (LINE, 10_000, {0: 1.0, 100: 0.8, 200: 0.6, 400: 0.2, 4000: 0.2}),
        (rl.LinearSchedule(start=0.0, end=3.0, over=rl.EnvironmentSteps(3)), 0, {2: 2.0}),
        (rl.LinearSchedule(start=2.0, end=0.0), 1000, {250: 1.5}),
        (rl.LinearSchedule(start=2.0, end=0.0), 500, {250: 1.0, 600: 0.0}),
        (rl.LinearSchedule(start=2.0, end=0.0), 0, {250: 2.0}),
        (
            rl.ExponentialSchedule(start=8.0, end=0.9, decay=0.5),
            0,
            {0: 8, 1: 4, 2: 2, 3: 1, 4: 0.9, 100: 0.9},
        ),
        (
            rl.PiecewiseSchedule(points=POINTS),
            0,
            {0: 1.0, 10: 1.0, 15: 2.0, 20: 3.0, 25: 2.0, 40: -1.0, 1000: -1.0},
        ),
        (rl.PiecewiseSchedule(points=((10, 7.0),)), 0, {0: 7.0, 10: 7.0, 20: 7.0}),
    ],
    ids=[
        "constant", "line", "rising line", "line over the plan", "line over a shorter plan",
        "line without a plan", "decay", "points", "point",
    ],
)  # fmt: skip
def test_schedule_value_follows_from_the_steps_alone(schedule, planned, values):
    for _ in range(2):  # in any order and as often as it is wanted
        for steps, value in values.items():
            assert schedule(at(steps, planned)) == pytest.approx(value, abs=1e-12)
