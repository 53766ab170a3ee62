"""Arrangements of levels: the chain, and one of one's own."""

from dataclasses import replace

import coach_rl as rl
from coach_rl.core.parameter_classes import parameter_class
from coach_rl.graph_managers.stack import Stack
from coach_rl.telemetry import description
from tests.refusals import check_refused

GOALS = rl.GoalSpace(
    low=(-1, -1), high=(1, 1), threshold=(0.2, 0.2), elements=(0, 1), key="observation"
)
AGENT = rl.UniformAgentParameters()
TOP = rl.LevelParameters(name="top", agent=AGENT)
LOW = rl.LevelParameters(name="low", agent=AGENT, goal_space=GOALS, horizon=3)


class Counted(Stack):
    """A stack that names its kind."""


@parameter_class
class CountedChain(rl.LevelChain):
    """A chain of at most so many levels, with a stack of its own."""

    most: int = 2

    def problems(self, levels):
        yield from super().problems(levels)
        if len(levels) > self.most:
            yield f"{len(levels)} levels are more than {self.most}; leave some out"

    def settings(self, level):
        yield f"one of {self.most} at most: {level.name}"

    def build_stack(self, levels, environment, **others):
        stack = super().build_stack(levels, environment, **others)
        return Counted(levels=stack.levels, clock=stack.clock, signals=stack.signals)


def experiment(*levels, **settings):
    return rl.GraphParameters(
        levels=levels, environment=rl.PointMassParameters(), num_envs=2, **settings
    )


def test_chain_links_each_level_with_the_next():
    assert rl.LevelChain().links((TOP,)) == ((),)
    assert rl.LevelChain().links((TOP, LOW, LOW)) == ((1,), (2,), ())


def test_arrangement_of_ones_own_checks_describes_and_builds():
    with rl.GraphManager(experiment(TOP, LOW, arrangement=CountedChain())) as manager:
        manager.create_graph(rl.Runtime(seed=0, device="cpu"))
        assert isinstance(manager.graph.training, Counted)
        assert "one of 2 at most: low" in description.described(manager)
        manager.graph.tick()
    middle = replace(LOW, name="middle")
    check_refused(
        lambda: experiment(TOP, middle, LOW, arrangement=CountedChain()),
        rl.ParameterError,
        "3 levels are more than 2",
    )


def test_level_below_another_without_goals_is_refused():
    check_refused(
        lambda: experiment(TOP, replace(LOW, goal_space=None)),
        rl.ParameterError,
        "level 'low' needs a goal_space",
    )
