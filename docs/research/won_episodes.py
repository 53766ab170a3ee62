"""A top level that learns from episodes alone in which the target was reached."""

from two_levels import SMALL, Panel, stack

import coach_rl as rl
from coach_rl import EpisodeFilter
from coach_rl.core import BoolArray, End, parameter_class
from coach_rl.core.agents import AgentContext
from coach_rl.core.records import Outcome


class Won(EpisodeFilter):
    """Holds an episode back until it is over."""

    def over(self, outcome: Outcome) -> BoolArray:
        """Where an episode of the world is over, [R]."""
        return (outcome.end & (End.TERMINATED | End.TRUNCATED)) > 0

    def keeps(self, outcome: Outcome) -> BoolArray:
        """Where it ended at its target, [R]."""
        return (outcome.end & End.TERMINATED) > 0


@parameter_class
class WonParameters:
    """Its description."""

    def build(self, context: AgentContext) -> Won:
        """The filter of one agent."""
        return Won()


def graph_manager(panel: Panel) -> rl.GraphManager:
    """The low level stores everything, as always."""
    learning = rl.LearningParameters(batch=8, learning_starts=8)
    top = rl.SACAgentParameters(**SMALL | {"learning": learning}, stores=WonParameters())
    world = rl.GoalPointMassParameters(threshold=0.2, terminate=True, max_episode_steps=30)
    return stack(panel, top={"agent": top}, environment=world)
