"""An exported level under a curriculum decides as `load(...)` does at that checkpoint."""

from dataclasses import replace

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core.parameter_classes import parameter_class
from tests.extensions.exporting.test_export import exported, play_both, run_of
from tests.extensions.exporting.test_exported_levels import SAC, TD3, two_levels
from tests.random_graphs import KEY
from tests.refusals import check_refused

HALVES = rl.LinearSchedule(start=1.0, end=0.5)
"""At a run's end the factor is 0.5, whatever the schedule's steps."""
ABSOLUTE = rl.GoalSpace(
    key=KEY, elements=(0, 1), low=(-1.0, -2.0), high=(1.0, 2.0), threshold=(0.3, 0.3)
)
RELATIVE = replace(ABSOLUTE, relative=True, observed="relative", reach=(0.8, 0.6))


def by_the_side(observation, _goal, _uniform):
    return np.where(observation[KEY][:, 0] > 0, 6, 2)


CURRICULA = {
    "thresholds of evaluations": (TD3, ABSOLUTE, {"threshold": HALVES}, {}),
    "thresholds of training": (
        TD3, ABSOLUTE, {"threshold": HALVES, "evaluations": "current"}, {},
    ),
    "bounds": (SAC, ABSOLUTE, {"bounds": HALVES, "center": (0.2, -0.3)}, {}),
    "reach": (TD3, RELATIVE, {"reach": HALVES}, {}),
    "reach and bounds by success": (
        SAC,
        RELATIVE,
        {
            "reach": rl.SuccessSchedule(values=(0.4, 0.9), advance=0.02, retreat=0.0, over=2),
            "bounds": rl.SuccessSchedule(values=(0.5, 1.0), advance=0.02, retreat=0.0, over=2),
        },
        {},
    ),
    "horizon": (TD3, ABSOLUTE, {"horizon": HALVES}, {}),
    "horizon of its own": (
        TD3, RELATIVE, {"horizon": HALVES, "threshold": HALVES}, {"horizon_of": by_the_side},
    ),
}  # fmt: skip


def under(curriculum, *, agent=TD3, goals=ABSOLUTE, **of_low):
    params = two_levels(agent, agent, goals).parameters
    top, low = params.levels
    low = replace(low, changes=(curriculum,), **of_low)
    return rl.GraphManager(replace(params, levels=(top, low)))


@pytest.mark.drawn(one_of=4)
@pytest.mark.filterwarnings("ignore:.*would learn nothing")
@pytest.mark.parametrize("name", CURRICULA)
def test_exported_curriculum_decides_as_load_does(name, tmp_path):
    agent, goals, scheduled, of_low = CURRICULA[name]
    run = run_of(under(rl.Curriculum(**scheduled), agent=agent, goals=goals, **of_low), tmp_path)
    assert play_both(run, exported(run, tmp_path / "policy.zip"))


@parameter_class
class Further(rl.Curriculum):
    """A change of another package, which is more than a curriculum."""

    def build(self, level, context, clock):
        return replace(level, horizon_of=by_the_side)


def test_curriculum_of_a_users_class_is_refused(tmp_path):
    run = run_of(under(Further(threshold=HALVES)), tmp_path)
    message = "level 'low' cannot be exported: its Further changes it while it trains"
    check_refused(lambda: rl.export(run, tmp_path / "a.zip"), rl.ConfigurationError, message)
