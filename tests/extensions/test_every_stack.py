"""A stack equals a plain recursion with levels of extensions too: timed, planned, with skills."""

from functools import partial

from hypothesis import settings
from hypothesis import strategies as st

import coach_rl as rl
from coach_rl.extensions.skills.skill_agents import SkillAgents
from coach_rl.extensions.testing.states import assert_same_state
from tests.extensions.every_stack import Level, Planned, Plans, build, of_skill
from tests.levels.any_stack import Agents, Kinds, goal_spaces, machine_of, stacks
from tests.levels.test_level_machine import EXAMPLES

ANY_TIME = st.one_of(
    st.just(rl.GoalSpace),
    st.builds(lambda longest: partial(rl.TimedGoalSpace, longest=longest), st.integers(1, 7)),
)
KINDS = ["part of a place", "critic", "grid", "conditions", "visited"]
"""Kinds of agents that plan."""


@st.composite
def planners(draw, own):
    """Any agent that plans ways to these goals, and the elements that it asks for below.

    It has few places, so that it is often where it has been.
    """
    kind = draw(st.sampled_from(KINDS))
    elements = own.elements or (0, 1, 2)
    places, conditions = rl.GridPlaces(spacing=2.0), None
    costs = [rl.EdgeLengths(), rl.EdgeLengths(missed=5.0)]
    if kind == "part of a place":
        elements = elements[: draw(st.integers(1, 2))]
    if kind == "conditions":
        left_open = [element for element in (0, 1, 2) if element not in elements] or elements
        left_open = (draw(st.sampled_from(left_open)),)
        conditions = rl.GoalSpace(low=(-2,), high=(2,), threshold=(1,), elements=left_open)
    if kind in ("visited", "critic"):
        places = rl.FarthestPoints(
            count=draw(st.sampled_from([4, 9])),
            spacing=draw(st.sampled_from([0.0, 1.0])),
            neighbours=draw(st.sampled_from([3, 1])),
        )
    if kind == "critic":
        costs = [rl.CriticSteps(every=9, longest=4.0), rl.CriticSteps(every=None)]
    besides = [element for element in (0, 1, 2) if element not in elements]
    besides = besides[: draw(st.sampled_from([2, 1, 0]))]
    planner = rl.GraphAgentParameters(
        places=places,
        costs=draw(st.sampled_from(costs)),
        forgetting=draw(st.sampled_from([0.2, 0.7, 0.0])),
        lowest_probability=draw(st.sampled_from([0.02, 0.5])),
        retry_discount=draw(st.sampled_from([0.5, 0.0])),
        setbacks=draw(st.booleans()),
        fixed_goal=tuple(draw(st.sampled_from([-0.5, 1.0])) for _ in besides),
        conditions=conditions,
        exploring=draw(st.sampled_from([0.0, 0.5])),
        report_every=draw(st.sampled_from([5, 1000])),
    )
    return planner, (*elements, *besides)


class EveryKind(Kinds):
    """Those of extensions, too.

    An agent that plans ways to its level's goals sees them absolutely, and plans along goals of the
    elements that it asks for. Neither turn full circle or have a time. Where it asks a critic,
    these pay for each step.
    """

    LEVEL = Level

    def __init__(self, draw, count):
        super().__init__(draw, count)
        self.plans = [draw(st.integers(0, 2)) == 2 for _ in range(count - 1)] + [False]
        self.planner = None
        """The planner of the level above, and the elements that it asks for."""

    def needs_goals(self, depth):
        return self.plans[depth] or self.planner is not None

    def goal_space(self, depth):
        straight, asked = self.plans[depth] or self.planner is not None, {}
        if self.planner is not None:
            planner, asked["elements"] = self.planner
            if isinstance(planner.costs, rl.CriticSteps):
                asked["rewards"] = ("sparse",)
        if self.plans[depth]:
            asked["observed"] = ("absolute",)
        if not straight and depth > 0:
            asked["kinds"] = ANY_TIME
        return self.draw(goal_spaces(is_top=depth == 0, is_straight=straight, **asked))

    def own(self, depth, space):
        self.planner = self.draw(planners(space)) if self.plans[depth] else None
        if self.planner is not None:
            return {"plans": self.planner[0]}
        has_skills = isinstance(space, rl.OptionSpace) and self.draw(st.booleans())
        return {"is_untold": True} if has_skills else {}

    def may_end(self, space):
        return not isinstance(space, rl.TimedGoalSpace)

    def is_final(self, space):
        return isinstance(space, rl.TimedGoalSpace)


class EveryAgent(Agents):
    """Agents that plan, and skills, too."""

    def build(self, *described, **more):
        return build(*described, **more)

    def of_recursion(self, levels, count):
        return Plans.of(levels, count)

    def remembered(self, agent, transitions):
        if not isinstance(agent, SkillAgents):
            return super().remembered(agent, transitions)
        members = enumerate(agent.members.values())
        return [(member, of_skill(transitions, number)) for number, member in members]

    def continued(self, agent, before):
        if isinstance(agent, SkillAgents):
            for name, member in agent.members.items():
                self.continued(member, before.members[name])
            return
        super().continued(agent, before)
        if isinstance(agent, Planned):
            agent.graph.load_state_dict(before.graph.state_dict())

    def train(self, agents, clock):
        for agent in agents:
            if isinstance(agent, Planned):
                agent.graph.train(clock)

    def check(self, agent, depth, expected):
        if isinstance(agent, Planned):
            learned = expected.agents[depth].state_dict()
            assert_same_state(agent.graph.state_dict(), learned)


class TestEveryStack(machine_of(stacks(EveryKind), EveryAgent(), failing=st.just(0.0)).TestCase):
    settings = settings(EXAMPLES, max_examples=40)
