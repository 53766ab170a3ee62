"""Stacks of levels of any kind, and what holds for each: it equals a plain recursion.

The recursion (`plain_stack`) knows nothing of rows, send and recv. Agents follow a script or plan,
so equality is exact.
"""

import copy
import itertools
from collections import Counter

import numpy as np
import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.goals import GoalSpace
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.level_phases.moments import SuccessRate
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.graph_managers.level_timing import LevelTimings
from tests.levels.plain_stack import BY_RULE, Level, Recursions, earned, fewer, options
from tests.levels.scripted_stack import build, managers

PLAIN_GOALS = st.just(GoalSpace)


@st.composite
def goal_spaces(
    draw,
    *,
    kinds=PLAIN_GOALS,
    is_top=False,
    elements=None,
    is_straight=False,
    observed=("absolute", "relative"),
    rewards=("sparse", "dense", earned),
):
    """Any goals of the walk's x, y and angle; those of the top are all three.

    Args:
        kinds: What makes goals of their fields.
        elements: The elements; None draws them.
        is_straight: Whether they turn nowhere full circle.
        observed: Ways in which they are shown.
        rewards: Their rewards.
    """
    if elements is None:
        elements = draw(st.permutations([0, 1, 2]))
        elements = tuple(elements[: 3 if is_top else draw(st.sampled_from([3, 2, 1, 3]))])
    is_angle = 2 in elements and not is_straight and draw(st.booleans())
    high = [draw(st.sampled_from([1.0, 3.0])) for _ in elements]
    low = [-bound for bound in high]
    angles = (elements.index(2),) if is_angle else ()
    for element in angles:
        low[element], high[element] = -np.pi, np.pi
    is_relative = draw(st.booleans())
    reach = tuple(draw(st.sampled_from([0.5, 1.5])) for _ in elements)
    return draw(kinds)(
        low=tuple(low),
        high=tuple(high),
        threshold=tuple(draw(st.sampled_from([0.3, 0.8, 1.6])) for _ in elements),
        elements=None if elements == (0, 1, 2) else elements,
        angles=angles,
        relative=is_relative,
        reach=reach if is_relative and draw(st.booleans()) else None,
        observed=draw(st.sampled_from(observed)),
        reward=draw(st.sampled_from(rewards)),
        reached_within=draw(st.sampled_from(["elements", "ball"])),
    )


@st.composite
def option_spaces(draw):
    """Any options, with rewards and ends of their own or without."""
    flags = {"with_rewards": draw(st.booleans()), "with_ends": draw(st.booleans())}
    return options(draw(st.integers(3, 5)), **flags)


@st.composite
def schedules(draw, *, is_top, has_goals):
    """Any times at which a level learns, or none."""
    steps = st.builds(EnvironmentSteps, st.integers(1, 200))
    successes = st.just(SuccessRate(rate=0.3, over=5))
    moments = st.none() | (steps | successes if has_goals else steps)
    return {
        "warmup": None if is_top else draw(moments),
        "frozen_from": draw(moments),
        "frozen_until": draw(moments),
        "turn": draw(st.none() | st.builds(EnvironmentSteps, st.integers(1, 60))),
    }


class Kinds:
    """What kinds of levels a stack is drawn from, from the top on: those of the core."""

    LEVEL = Level

    def __init__(self, draw, count):
        self.draw = draw

    def needs_goals(self, depth):
        """Whether the level needs goals."""
        return False

    def goal_space(self, depth):
        """Goals of a level."""
        return self.draw(goal_spaces(is_top=depth == 0))

    def own(self, depth, space):
        """Fields by which a level has an agent of another kind than those of the core."""
        return {}

    def may_end(self, space):
        """Whether an agent of the core may end such goals or options itself."""
        return True

    def is_final(self, space):
        """Whether reached goals are always terminal."""
        return False


@st.composite
def stacks(draw, make_kinds=Kinds):
    """One to four levels of any kind."""
    count = draw(st.sampled_from([3, 2, 4, 1]))
    is_scheduled, levels, kinds = draw(st.booleans()), [], make_kinds(draw, count)
    for depth in range(count):
        has_goals = draw(st.sampled_from([True, False, True, True])) or kinds.needs_goals(depth)
        other = None if depth == 0 else draw(option_spaces())
        space = kinds.goal_space(depth) if has_goals else other
        own = kinds.own(depth, space)
        is_frozen, may_freeze = draw(st.integers(0, 3)) == 3, draw(st.booleans())
        schedule = {}
        if is_scheduled and not is_frozen:
            schedule = draw(schedules(is_top=depth == 0, has_goals=has_goals))
            may_freeze = any(schedule[name] for name in schedule if name != "warmup")
        may_end = depth > 0 and not own and kinds.may_end(space)
        ends_options = may_end and draw(st.booleans())
        is_plain = not own and not ends_options
        horizon = draw(st.integers(1, 5) if depth else st.none() | st.integers(1, 4))
        horizon_of = fewer if draw(st.integers(0, 3)) == 3 else None
        levels.append(
            kinds.LEVEL(
                name=f"level {depth}",
                goal_space=space,
                horizon=horizon if horizon_of is None else 5,
                horizon_of=horizon_of,
                real_end_is_terminal=draw(st.booleans()),
                goal_is_terminal=draw(st.booleans()) or kinds.is_final(space),
                testing_rate=draw(st.sampled_from([0.0, 0.5])),
                frozen=is_frozen,
                stops_on_failure=draw(st.sampled_from(["never", "training", "always"])),
                failure_reward=-3.5 if has_goals else draw(st.sampled_from([None, -2.0])),
                may_freeze=may_freeze,
                ends_options=ends_options,
                remembers=draw(st.sampled_from(["", "sub_episode", "episode"])) if is_plain else "",
                **own,
                **schedule,
            )
        )
    return levels


def own_phases(levels, phase, others):
    """The phases of levels that have one of their own: HEATUP while others learn, or TEST."""
    return {
        level.name: others[depth]
        for depth, level in enumerate(levels)
        if depth in others
        and (others[depth] is Phase.HEATUP or level.may_freeze)
        and phase is not Phase.TEST
        and others[depth] is not phase
    }


class Agents:
    """The agents of a stack and of a recursion, and what is compared of them: those of the core."""

    def build(self, *described, **more):
        """The stack and its agents."""
        return build(*described, **more)

    def of_recursion(self, levels, count):
        """What decides in the recursion."""
        return BY_RULE

    def remembered(self, agent, transitions):
        """Which agents of a level should remember which of its transitions."""
        return [(agent, transitions)]

    def continued(self, agent, before):
        """Let an agent know what another did until now."""
        agent.transitions = before.transitions

    def train(self, agents, clock):
        """Let agents learn that do."""

    def check(self, agent, depth, expected):
        """What an agent has learned is what that of the recursion has."""


AGENTS = Agents()


def assert_complete(agents, lived, kinds):
    """There is a transition for each step and for each sub-episode.

    Args:
        agents: Top first.
        lived: Steps of each row.
        kinds: What the agents remember.
    """
    kept = [merged(kinds.remembered(agent, [])) for agent in agents]
    for row, steps in enumerate(lived):
        assert len(kept[-1].get(row, [])) == steps
        for upper, lower in itertools.pairwise(kept):
            ended = sum(each["end"] > 0 for each in lower.get(row, []))
            assert len(upper.get(row, [])) >= ended


def merged(members):
    """The transitions of a level by row; of several agents in turn."""
    found = {}
    for each, _ in members:
        for row, transitions in each.transitions.items():
            found.setdefault(row, []).extend(transitions)
    return found


def assert_same_transitions(found, expected, where, *, is_dense):
    """Equal to the bit, but for the order in which dense rewards are summed."""
    assert len(found) == len(expected), where
    for number, (mine, other) in enumerate(zip(found, expected, strict=True)):
        if is_dense:
            assert mine["reward"] == pytest.approx(other["reward"], abs=1e-9), (where, number)
            mine, other = {**mine, "reward": 0}, {**other, "reward": 0}
        assert mine == other, (where, number)


def means(totals):
    """What a level should log of its decisions and sub-episodes, given the sums of each row."""
    sums, logged = Counter(), {}
    for each in totals:
        sums.update(each)
    decided, count = sums.pop("decided", 0), sums.pop("sub_episodes", 0)
    for name, total in sums.items():
        kind, _, option = name.partition("/")
        chosen = sums[f"option_share/{option}"] if kind != "option_share" else count
        of = decided if name in ("tested_share", "penalised_share") else count
        logged[name] = total / (chosen if option else of)
    return {**logged, "sub_episodes": count} if count else logged


OWN_PHASES = st.dictionaries(st.integers(0, 3), st.sampled_from([Phase.HEATUP, Phase.TEST]))
"""Levels that are in a phase of their own, by their depth."""


FAILING = st.sampled_from([0.0, 0.05])


def machine_of(stacks, kinds=AGENTS, failing=FAILING):  # noqa: C901 - a class with its rules
    """A state machine of stacks and their recursions.

    Args:
        stacks: Strategy for levels, top first.
        kinds: Their agents.
        failing: Strategy for the chance that a simulator fails in place of a step.
    """

    class StackMachine(RuleBasedStateMachine):
        @initialize(
            levels=stacks,
            company=st.integers(1, 4),
            seed=st.integers(0, 9_999),
            discount=st.sampled_from([1.0, 0.5]),
            failing=failing,
        )
        def begin(self, levels, company, seed, discount, failing):
            self.levels, self.company, self.clock = levels, company, Clock()
            self.is_scheduled = any(level.is_scheduled for level in levels)
            self.described = (levels, self.clock, discount)
            self.more = {"failing": failing} if failing else {}
            seeds = [seed + row for row in range(company)]
            self.top, self.agents = kinds.build(seeds, *self.described, **self.more)
            self.watch()
            self.deciding = kinds.of_recursion(levels, company)
            self.plain = Recursions(seeds, levels, discount, self.deciding, failing)
            self.saved, self.is_equal = None, True

        def watch(self):
            self.schedule = LevelTimings(self.levels)
            self.schedule.watch(managers(self.top))

        def tick(self, phase, others):
            self.clock.phase = phase
            own = own_phases(self.levels, phase, others)
            if self.is_scheduled:
                self.schedule.update(self.clock, managers(self.top))
            else:
                self.clock.levels = own
            self.top.recv()
            kinds.train(self.agents, self.clock)
            self.clock.environment_steps += self.company
            return own

        @rule(phase=st.sampled_from(list(Phase)), ticks=st.integers(5, 30), others=OWN_PHASES)
        def play(self, phase, ticks, others):
            self.is_equal = False
            for _ in range(ticks):
                self.plain.tick(phase, self.tick(phase, others))
            self.check_transitions()
            self.is_equal = True

        @rule(ticks=st.integers(10, 40))
        def train(self, ticks):
            self.play(Phase.TRAIN, ticks, {})

        @rule()
        def resume(self):
            """Restore another stack in the middle of whatever is open."""
            state, before = self.top.state_dict(), self.agents
            unchanged, of_schedule = copy.deepcopy(state), self.schedule.state_dict()
            seeds = [99] * self.company
            self.top, self.agents = kinds.build(seeds, *self.described, **self.more)
            self.watch()
            self.schedule.load_state_dict(of_schedule)
            self.top.load_state_dict(state)
            for mine, other in zip(self.agents, before, strict=True):
                kinds.continued(mine, other)
            self.saved = (state, unchanged)

        @precondition(lambda self: self.saved)
        @rule()
        def state_is_unchanged(self):
            assert_same_state(*(without_environment(each) for each in self.saved))

        @rule()
        def log(self):
            """Levels log their figures since the last time."""
            for depth, manager in enumerate(managers(self.top)):
                totals = [each.totals[depth] for each in self.plain.each]
                assert manager.drain() == pytest.approx(means(totals), rel=1e-9, abs=1e-9)
                for each in totals:
                    each.clear()

        def check_transitions(self):
            for depth, agent in enumerate(self.agents):
                space = self.levels[depth].goal_space
                is_dense = isinstance(space, GoalSpace) and space.reward != "sparse"
                for row, each in enumerate(self.plain.each):
                    for mine, kept in kinds.remembered(agent, each.transitions[depth]):
                        found, where = mine.transitions.get(row, []), f"row {row}, level {depth}"
                        assert_same_transitions(found, kept, where, is_dense=is_dense)
                kinds.check(agent, depth, self.deciding)

        def teardown(self):
            if hasattr(self, "plain") and self.is_equal:
                self.log()
                lived = [len(each.transitions[-1]) for each in self.plain.each]
                assert_complete(self.agents, lived, kinds)
                if not self.more:
                    assert lived == [len(self.plain.phases)] * self.company

    return StackMachine


def without_environment(state):
    """The states of levels, top first."""
    inner = state["environment"]
    own = {name: each for name, each in state.items() if name != "environment"}
    return [own, *(without_environment(inner) if "rows" in inner else [])]
