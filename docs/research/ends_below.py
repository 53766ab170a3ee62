"""HIRO, HAC or goals with a time above goals that end by a learned chance: `-cp "above=hac"`."""

from dataclasses import dataclass, replace
from typing import Literal

from learned_ends import ChoosesGoals, ChoosesGoalsParameters, EndsGoalsParameters
from two_levels import PLACES, SMALL, stack
from two_levels import Panel as TwoLevels

import coach_rl as rl
from coach_rl.core import parameter_class
from coach_rl.memories.batches import ACTIONS, extra
from coach_rl.memories.samplers import SamplerUnit, UnitContext


@dataclass(frozen=True, kw_only=True)
class Panel(TwoLevels):
    """Settings to change with -cp."""

    above: Literal["hiro", "hac", "timed"] = "hiro"
    """The algorithm above; `timed` has a level between, which receives goals with a time."""


@parameter_class
class CorrectedParameters(rl.HIROAgentParameters):
    """HIRO's agent whose critic judges the goals of the level below."""

    AGENT = ChoosesGoals


class Sent(SamplerUnit):
    """The goals as they were sent: HAC shows what was achieved, which is over anyway."""

    name, inputs, outputs = "sent", (ACTIONS,), (extra("sent"),)

    def __call__(self, batch, size):
        return {extra("sent"): batch[ACTIONS].clone()}


@parameter_class
class SentParameters:
    """Its description: it stands before the unit that shows what was achieved."""

    after: str = "gather"

    def build(self, context: UnitContext) -> Sent:
        """The unit in a memory."""
        return Sent()


def graph_manager(panel: Panel) -> rl.GraphManager:
    """The lowest level ends its goals; with HAC it learns them in hindsight as well."""
    low = {"agent": EndsGoalsParameters(**SMALL)}
    if panel.above == "hiro":
        return stack(panel, top={"agent": CorrectedParameters(**SMALL)}, low=low)
    memory = rl.ReplayMemoryParameters(capacity=50_000, units=(SentParameters(),))
    learner = ChoosesGoalsParameters(**SMALL, memory=memory)
    chooses = rl.HACAgentParameters(learner=learner)
    places = replace(PLACES, relative=False, reach=None, observed="absolute")
    goals = {"goal_space": places, "horizon": 8, "parts": (rl.SubGoalTesting(rate=0.3),)}
    if panel.above == "hac":
        low["agent"] = rl.HACAgentParameters(learner=low["agent"])
        return stack(panel, top={"agent": chooses, **goals}, low=low)
    top, lowest = stack(panel, low=low).parameters.levels
    timed = goals | {"goal_space": rl.TimedGoalSpace.of(places, longest=20)}
    middle = rl.LevelParameters(name="middle", agent=chooses, **timed)
    return stack(panel, levels=(top, middle, lowest))
