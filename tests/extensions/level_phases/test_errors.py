"""Times of levels that make no sense are refused in a line."""

import pytest

import coach_rl as rl
from tests.extensions.level_phases.test_level_phases import parameters
from tests.refusals import check_refused

OPTIONS = rl.OptionSpace(count=3)


def phased(**levels):
    return lambda: parameters(heatup=30, **levels)


def several():
    twice = (rl.LevelTimes(warmup=60), rl.LevelTimes(turn=60))
    parameters(heatup=30, low={"changes": twice})


PHASES = [
    (phased(top={"warmup": 99}), "warmup (99 ... of level 'top': no level above"),
    (phased(low={"warmup": 600}), "must be shorter than schedule.training (600"),
    (phased(low={"warmup": 30}), "must be longer than schedule.heatup (30"),
    (phased(low={"warmup": 90, "frozen_until": 90}), "the level is frozen until 90 env"),
    (phased(low={"warmup": 90}, top={"frozen": True}), "level 'top' above is frozen, and hand"),
    (phased(low={"frozen": True, "turn": 9}), "'low' is frozen for the whole run, so turn would"),
    (phased(low={"frozen_from": 90, "frozen_until": 90}), "(90 ... of ... 'low' must come bef"),
    (phased(low={"frozen_from": 30}), "level 'low' would never learn: it is frozen from 30 env"),
    (phased(top={"frozen_until": 600}), "never learn: it is frozen from the beginning until 600"),
    (phased(low={"turn": 60}), "one level alone has a turn"),
    (phased(top={"turn": 60}, low={"turn": 600}), "take 600 environment steps, so that it wou"),
    (
        phased(low={"warmup": rl.SuccessRate(rate=0.9, level="lwo")}),
        "success rate of level 'lwo', which does not exist; levels with goals: top, low",
    ),
    (
        phased(low={"goal_space": OPTIONS, "warmup": rl.SuccessRate(rate=0.9)}),
        "of level 'low', which has no goals of its own; levels with goals: top",
    ),
    (
        phased(low={"warmup": rl.TrainingSteps(9)}),
        "LevelTimes.warmup must be EnvironmentSteps | Env",
    ),
    (
        phased(middle={"warmup": 60}, low={"warmup": 90}),
        "'middle' above acts ... (60 ... must be longer",
    ),
    (
        phased(low={"frozen_from": None}),
        "level 'low' has LevelTimes without a time; set frozen_from, frozen_until, warmup, turn",
    ),
    (several, "level 'low' has several LevelTimes; give all its times in one"),
    (
        phased(training=rl.TrainingSteps(99), top={"frozen_from": 60}, low={"frozen_from": 60}),
        "there are none once every level is frozen",
    ),
]


@pytest.mark.parametrize(("make", "line"), PHASES)
def test_times_that_make_no_sense_are_refused(make, line):
    check_refused(make, rl.ParameterError, line)
