"""The stacks of `tests.levels` with agents of extensions: such as plan, and such as have skills."""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import cache, partial

import numpy as np

from coach_rl.agents.ddpg_agent import DDPGAgentParameters
from coach_rl.core.agents import AgentContext, LevelPlace
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.goals import GOAL_KEY
from coach_rl.core.records import ActionRequest, Outcome
from coach_rl.extensions.hac.sub_goal_testing import SubGoalTesting
from coach_rl.extensions.planning.edge_costs import CriticSteps
from coach_rl.extensions.planning.graph_agent import GraphAgent, GraphAgentParameters
from coach_rl.extensions.planning.graph_rows import GraphRows
from coach_rl.extensions.skills.skill_agents import SkillAgents
from tests.levels import plain_stack, scripted_stack
from tests.levels.plain_stack import SPACES, TESTING_SEED, ByRule
from tests.levels.scripted_stack import Pending, Scripted


@dataclass(frozen=True, kw_only=True)
class Level(plain_stack.Level):
    """The same, whose agent may plan, and which tests as HAC does."""

    plans: GraphAgentParameters | None = None
    """The level's agent plans."""

    @property
    def tests(self):
        """The part that tests its decisions: that of HAC."""
        return SubGoalTesting(rate=self.testing_rate)

    @property
    def has_skills(self):
        """Whether the level has an agent for each of its options."""
        return self.is_untold


@dataclass
class Plans(ByRule):
    """The agents that plan, by the depth of their level; what they learn waits for `learn`.

    Places of a graph that are visited depend on all that was visited at once. So agents with such
    places are told of all environments together.
    """

    agents: dict[int, GraphAgent]
    rows: dict[int, object]
    visited: set[int]
    """The levels whose agents have places that are visited."""
    lessons: list[Callable] = field(default_factory=list)
    """What is learned when the tick is over."""
    requests: dict[int, list[ActionRequest]] = field(default_factory=dict)
    """Decisions at the beginning of episodes, of agents that visit places."""
    outcomes: dict[int, list[Outcome]] = field(default_factory=dict)
    """The outcomes of decisions, for the same agents."""

    @classmethod
    def of(cls, levels, count):
        agents = {d: planner(levels, d, count) for d, level in enumerate(levels) if level.plans}
        return cls(
            agents=agents,
            rows={d: agent.new_rows(count, TESTING_SEED) for d, agent in agents.items()},
            visited={d for d in agents if levels[d].plans.places.are_visited},
        )

    def decide_for(self, depth):
        return depth in self.agents

    def chosen(self, depth, request, phase):
        visits = depth in self.visited
        clock = Clock(phase=phase, acts_only=visits)
        action = self.agents[depth].act(self.rows[depth], request, clock)[0]
        if visits and phase is not Phase.TEST:
            self.requests.setdefault(depth, []).append(request)
        return action

    def hear(self, depth, outcome, phase):
        agent, rows = self.agents[depth], self.rows[depth]
        lesson = partial(agent.observe, rows, outcome, Clock(phase=phase))
        if phase is Phase.TEST:
            lesson()
        elif depth in self.visited:
            self.outcomes.setdefault(depth, []).append(outcome)
        else:
            self.lessons.append(lesson)

    def learn(self):
        for depth, begun in self.requests.items():
            rows = self.rows[depth]
            rows.follow(rows.decisions())  # which are made
            self.agents[depth].act(rows, together(begun), Clock(phase=Phase.TRAIN))
            rows.followed = None
        for lesson in self.lessons:
            lesson()
        for depth, came in self.outcomes.items():
            self.agents[depth].observe(self.rows[depth], together(came), Clock(phase=Phase.TRAIN))
        for agent in self.agents.values():
            agent.train(Clock())
        self.lessons.clear()
        self.requests.clear()
        self.outcomes.clear()


def together(parts):
    """One request or outcome of several environments."""
    parts = sorted(parts, key=lambda part: part.rows[0])

    def joined(values):
        if isinstance(values[0], dict):
            return {key: joined([value[key] for value in values]) for key in values[0]}
        return np.concatenate(values)

    names = [each.name for each in fields(parts[0])]
    return type(parts[0])(**{name: joined([getattr(p, name) for p in parts]) for name in names})


def planner(levels, depth, count):
    """The agent of a level that plans."""
    plans = levels[depth].plans
    below = critic() if isinstance(plans.costs, CriticSteps) else None
    place = LevelPlace(level=levels[depth], below=levels[depth + 1], agent_below=below)
    return plans.build(AgentContext(spaces=SPACES, num_envs=count, place=place))


@cache
def critic():
    """An agent whose critic follows a rule: goals that are far away are worth less."""
    agent = DDPGAgentParameters().build(AgentContext(spaces=SPACES, num_envs=1, place=LevelPlace()))
    agent.policy_actions = lambda seen: np.zeros((len(seen[GOAL_KEY]), 3))
    agent.learner.values = lambda seen, action: (
        -np.abs(seen[GOAL_KEY]).sum(axis=1) - np.abs(seen["observation"][:, 0])
    )
    return agent


def of_skill(transitions, number):
    """What the agent of one option should remember of all that its level did, without options.

    To it, a row in which another skill has acted starts again.
    """
    found, latest = [], None
    for each in transitions:
        option = int(np.argmax(each["told"]))
        if option == number:
            unseen = {"told": None, "told after": None, "told next": None}
            found.append({**each, **unseen, "fresh": each["fresh"] or latest != option})
        latest = option
    return found


@dataclass
class PlannedRows(Pending):
    """The same, with what an agent that plans keeps of its rows."""

    graph: GraphRows = None

    def state_dict(self):
        return {"decisions": super().state_dict(), "graph": self.graph.state_dict()}

    def load_state_dict(self, state):
        super().load_state_dict(state["decisions"])
        self.graph.load_state_dict(state["graph"])


@dataclass
class Planned(Scripted):
    """Decides as an agent that plans."""

    graph: GraphAgent = None

    def new_rows(self, num_envs, seed):
        return PlannedRows(num_envs, graph=self.graph.new_rows(num_envs, seed))

    def chosen(self, row_state, request, clock):
        return self.graph.act(row_state.graph, request, clock)

    def observe(self, row_state, outcome, clock):
        super().observe(row_state, outcome, clock)
        self.graph.observe(row_state.graph, outcome, clock)


def build(seeds, levels, clock, discount=1.0):
    """The stack, reset, and its agents, top first."""
    numbers = [number for number, level in enumerate(levels) if level.plans]
    graphs = {number: planner(levels, number, len(seeds)) for number in numbers}
    return scripted_stack.build(seeds, levels, clock, discount, partial(agent_of, graphs=graphs))


def agent_of(levels, index, below, count, *, graphs):
    """The agent of a level."""
    level, space = levels[index], below.spaces.action
    lower = levels[index + 1].goal_space if index + 1 < len(levels) else None
    if index in graphs:
        return Planned(level, lower, space, count, graph=graphs[index])
    if level.has_skills:
        names = [f"skill {number}" for number in range(level.goal_space.count)]
        skills = {n: Scripted(Level(name=n), lower, space, count) for n in names}
        return SkillAgents(skills, below.spaces.observation.spaces)
    return scripted_stack.agent_of(levels, index, below, count)
