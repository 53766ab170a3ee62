"""Exported goals that learn and levels with parts decide as `load(...)` does."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import coach_rl as rl
from coach_rl.core import End, LevelPart, LevelPartParameters
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.extensions.learned_goals.lesson_goals import LESSONGoals
from tests.agents.goal_stacks import stack
from tests.builders import ddpg, td3
from tests.extensions.exporting.test_export import exported, play_both, run_of
from tests.random_graphs import GOALS, KEY
from tests.refusals import check_refused

pytestmark = pytest.mark.filterwarnings("ignore:.*would learn nothing")

TORSO = rl.TorsoParameters(middleware=(16,))
TD3 = td3(torso=TORSO, updates_per_step=0.1)
SAC = ddpg(rl.SACAgentParameters, torso=TORSO, updates_per_step=0.1)
FAST = rl.AdamParameters(learning_rate=0.01)
SLOW = rl.LESSONGoalSpace(
    low=(-2.0,) * 3, high=(2.0,) * 3, threshold=(0.3,) * 3, key=KEY, reward="dense",
    torso=TORSO, optimizer=FAST, ahead=4, every=1,
)  # fmt: skip
RELATIVE = replace(SLOW, relative=True, observed="relative")
METRA = rl.METRAGoalSpace(torso=TORSO, optimizer=FAST)
FOUR = {"low": (-1.0,) * 4, "high": (1.0,) * 4, "threshold": (0.0,) * 4}


def two_levels(top, low, goals, training=240):
    """A run of two levels."""
    return rl.GraphManager(stack(top, low, goals=goals, training=training))


def at_angles():
    """A run whose environment has angles as goals, from 5 for a whole turn on."""
    goals = rl.GoalSpace(
        key=KEY, elements=(0, 1), low=(5.0, -1.0), high=(5.0 + 2 * np.pi, 1.0),
        threshold=(0.2, 0.2), angles=(0,),
    )  # fmt: skip
    params = two_levels(TD3, TD3, GOALS, training=100).parameters
    top, low = params.levels
    return rl.GraphManager(replace(params, levels=(replace(top, goal_space=goals), low)))


def three_levels(*parts):
    """A run whose middle level has parts."""
    params = two_levels(TD3, TD3, GOALS, training=100).parameters
    top, low = params.levels
    middle = replace(low, name="middle", horizon=3, parts=parts)
    levels = (top, middle, replace(low, horizon=2))
    return rl.GraphManager(replace(params, levels=levels))


EXPORTED = {
    "slow features": partial(two_levels, TD3, TD3, replace(RELATIVE, reach=(0.5,) * 3)),
    "learned bounds, relative": partial(two_levels, TD3, TD3, replace(RELATIVE, bounds_rate=0.1)),
    "learned bounds, absolute": partial(two_levels, SAC, SAC, replace(SLOW, bounds_rate=0.1)),
    "skills as directions": partial(two_levels, SAC, SAC, METRA),
    "discrete skills": partial(two_levels, SAC, SAC, replace(METRA, **FOUR, discrete=True)),
    "angles of the environment": at_angles,
    "stops on failure": partial(three_levels, rl.StopOnFailure(when="always", reward=-1.0)),
}


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("name", EXPORTED)
def test_exported_levels_decide_as_load_does(name, tmp_path):
    run = run_of(EXPORTED[name](), tmp_path)
    assert play_both(run, exported(run, tmp_path / "policy.zip"))


@parameter_class
class Judging(rl.LESSONGoalSpace):
    """Slow features with a judge of their own."""

    def build(self, context):
        return JudgingGoals(self, context)


class JudgingGoals(LESSONGoals):
    def judge(self, goal, achieved, before=None):
        return super().judge(goal, 2 * achieved, before)


class Drifting(LevelPart):
    """Ends all sub-episodes after each decision."""

    def ends(self, answer, index):
        return np.full(len(answer), np.uint8(End.OPTION))


@parameter_class
class DriftingParameters(LevelPartParameters):
    """A part of a level by another package."""

    def build(self, context):
        return Drifting()


REFUSED = {
    "goals": (
        partial(two_levels, TD3, TD3, Judging(**vars(SLOW))),
        "level 'low' cannot be exported: its goals are a JudgingGoals with methods of its",
    ),
    "parts": (
        partial(three_levels, DriftingParameters()),
        "level 'middle' cannot be exported: its part DriftingParameters may act in evaluations",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_level_with_code_of_another_package_that_is_not_exported_is_refused(name, tmp_path):
    make, message = REFUSED[name]
    run = run_of(make(), tmp_path)
    check_refused(lambda: rl.export(run, tmp_path / "a.zip"), rl.ConfigurationError, message)
