"""HIRO, HAC or goals with a time above goals that end by a learned chance: `-cp "above=hac"`."""

from dataclasses import dataclass, replace
from typing import Literal

from learned_ends import ChoosesGoals, ChoosesGoalsParameters, EndsGoalsParameters
from two_levels import PLACES, SMALL, stack
from two_levels import Panel as TwoLevels

import coach_rl as rl
from coach_rl.core import parameter_class


@dataclass(frozen=True, kw_only=True)
class Panel(TwoLevels):
    """Settings to change with -cp."""

    above: Literal["hiro", "hac", "timed"] = "hiro"
    """The algorithm above; `timed` has a level between, which receives goals with a time."""


@parameter_class
class CorrectedParameters(rl.HIROAgentParameters):
    """HIRO's agent whose critic judges the goals of the level below."""

    AGENT = ChoosesGoals


def graph_manager(panel: Panel) -> rl.GraphManager:
    """The lowest level ends its goals; with HAC it learns them in hindsight as well."""
    low = {"agent": EndsGoalsParameters(**SMALL)}
    if panel.above == "hiro":
        return stack(panel, top={"agent": CorrectedParameters(**SMALL)}, low=low)
    chooses = rl.HACAgentParameters(learner=ChoosesGoalsParameters(**SMALL))
    places = replace(PLACES, relative=False, reach=None, observed="absolute")
    goals = {"goal_space": places, "horizon": 8, "testing_rate": 0.3}
    if panel.above == "hac":
        low["agent"] = rl.HACAgentParameters(learner=low["agent"])
        return stack(panel, top={"agent": chooses, **goals}, low=low)
    top, lowest = stack(panel, low=low).parameters.levels
    timed = goals | {"goal_space": rl.TimedGoalSpace.of(places, longest=20)}
    middle = rl.LevelParameters(name="middle", agent=chooses, **timed)
    return stack(panel, levels=(top, middle, lowest))
