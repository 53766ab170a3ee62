"""A stack of levels equals a plain recursion over one environment: of any kind, in any company.

The recursion (`plain_stack`) knows nothing of rows, send and recv. Agents follow a script or plan,
so equality is exact.
"""

import copy
import itertools
import warnings
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.levels import NOTHING_RECEIVED, SuccessRate
from coach_rl.core.options import OptionSpace
from coach_rl.core.steps import EnvironmentSteps
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.graph_managers.level_phases import LevelPhases
from coach_rl.levels.level_checks import agent_spaces
from tests.levels.plain_stack import BY_RULE, Level, earned, fewer, options, played
from tests.levels.scripted_stack import SPACES, build, managers

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


PHASES = st.lists(
    st.tuples(
        st.sampled_from(list(Phase)),
        st.integers(10, 30),
        st.dictionaries(st.integers(0, 3), st.sampled_from([Phase.HEATUP, Phase.TEST])),
    ),
    min_size=1,
    max_size=4,
)
"""Stretches of a run: phase, ticks, and levels by their depth that are in another phase."""


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

    def build(self, *described):
        """The stack and its agents."""
        return build(*described)

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


def assert_complete(agents, company, steps, kinds):
    """There is a transition for each step and for each sub-episode."""
    kept = [merged(kinds.remembered(agent, [])) for agent in agents]
    for row in range(company):
        assert len(kept[-1][row]) == steps
        for upper, lower in itertools.pairwise(kept):
            ended = sum(each["end"] > 0 for each in lower.get(row, []))
            assert len(upper.get(row, [])) == ended


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


REST = {
    "company": st.integers(1, 5),
    "seed": st.integers(0, 10_000),
    "stretches": PHASES,
    "discount": st.sampled_from([1.0, 0.5]),
    "saved_at": st.integers(0, 40),
}
"""What a run is drawn from beside its levels."""


@settings(max_examples=50, deadline=None)
@given(levels=stacks(), **REST)
def test_stack_any_levels_equals_plain_recursion(
    levels, company, seed, stretches, discount, saved_at
):
    check_stack(levels, company, seed, stretches, discount, saved_at)


def check_stack(levels, company, seed, stretches, discount, saved_at, kinds=AGENTS):
    """Also where it is saved and restored in the middle of whatever is open."""
    seeds, clock = [seed + i for i in range(company)], Clock()
    phases = [phase for phase, ticks, _ in stretches for _ in range(ticks)]
    others = [
        own_phases(levels, phase, own) for phase, ticks, own in stretches for _ in range(ticks)
    ]
    top, agents = kinds.build(seeds, levels, clock, discount)
    schedule = LevelPhases(levels)
    schedule.watch(managers(top))
    for tick, (clock.phase, own) in enumerate(zip(phases, others, strict=True)):
        if tick == saved_at:
            state, before, saved = top.state_dict(), agents, schedule.state_dict()
            top, agents = kinds.build([99] * company, levels, clock, discount)
            schedule = LevelPhases(levels)
            schedule.watch(managers(top))
            schedule.load_state_dict(saved)
            top.load_state_dict(state)
            for mine, other in zip(agents, before, strict=True):
                kinds.continued(mine, other)
        if any(level.is_scheduled for level in levels):
            schedule.update(clock, managers(top))
        else:
            clock.levels = own
        top.recv()
        kinds.train(agents, clock)
        clock.environment_steps += company
    deciding = kinds.of_recursion(levels, company)
    expected = played(seeds, levels, phases, discount, others, deciding)
    for depth, (agent, manager) in enumerate(zip(agents, managers(top), strict=True)):
        space = levels[depth].goal_space
        is_dense = isinstance(space, GoalSpace) and space.reward != "sparse"
        for row, each in enumerate(expected):
            for mine, transitions in kinds.remembered(agent, each.transitions[depth]):
                found, where = mine.transitions.get(row, []), f"row {row}, level {depth}"
                assert_same_transitions(found, transitions, where, is_dense=is_dense)
        told = means([each.totals[depth] for each in expected])
        assert manager.drain() == pytest.approx(told, rel=1e-9, abs=1e-9)
        kinds.check(agent, depth, deciding)
    assert_complete(agents, company, len(phases), kinds)


GOALS = GoalSpace(low=(-3.0, -3.0), high=(3.0, 3.0), threshold=(0.5, 0.5), elements=(0, 1))
TWO_LEVELS = [Level(name="top"), Level(name="low", goal_space=GOALS, horizon=5)]


def test_stack_tested_decision_all_levels_below_are_greedy():
    levels = [
        Level(name="top", testing_rate=0.5),
        Level(name="middle", goal_space=GOALS, horizon=3),
        Level(name="low", goal_space=OptionSpace(count=3), horizon=2),
    ]
    top, agents = build([1], levels, Clock())
    for _ in range(60):
        top.recv()
    assert 0 < np.mean([each["tested"] for each in agents[0].transitions[0]]) < 1
    for agent in agents[1:]:  # who tests nothing of its own passes on what it is told
        assert all(each["quiet"] == each["tested"] for each in agent.transitions[0])
        assert 0 < np.mean([each["quiet"] for each in agent.transitions[0]]) < 1


def test_stack_rewards_are_discounted_by_simulator_steps():
    levels = [
        Level(name="top"),
        Level(name="middle", goal_space=OptionSpace(count=3), horizon=2),
        Level(name="low", goal_space=OptionSpace(count=4), horizon=3),
    ]
    top, agents = build([3], levels, Clock(), 0.9)
    for _ in range(40):
        top.recv()
    steps = iter(agents[2].transitions[0])
    for transition in agents[0].transitions[0]:
        duration = transition["duration"]
        rewards = [next(steps)["reward"] for _ in range(duration)]
        assert transition["reward"] == pytest.approx(np.dot(rewards, 0.9 ** np.arange(duration)))


def test_level_manager_sub_goals_are_clipped_to_bounds():
    top, agents = build([5], TWO_LEVELS, Clock())
    for _ in range(40):
        top.recv()
    goals = np.array([each["told"] for each in agents[1].transitions[0]])
    assert np.abs(goals).max() == 3.0
    wished = np.array([each["seen"] for each in agents[0].transitions[0]])
    assert np.abs(wished).max() > 3.0, "the test wants wishes out of bounds"


@pytest.mark.parametrize(("threshold", "warns"), [(1e-3, False), (1e-7, True)])
def test_level_manager_goals_that_float32_rounds_warn_once(threshold, warns):
    fine = replace(GOALS, threshold=(threshold,) * 2)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        top, _ = build([5], [Level(name="top"), Level(name="low", goal_space=fine)], Clock())
        for _ in range(20):
            top.recv()
    messages = [str(each.message) for each in warned]
    assert len(messages) == warns
    assert all("float32 numbers are" in each for each in messages)


def test_level_manager_state_dict_shares_no_memory():
    top, _ = build([1, 2, 3], TWO_LEVELS, Clock())
    for _ in range(7):
        top.recv()
    state = top.state_dict()
    before = copy.deepcopy(state)
    for _ in range(3):
        top.recv()
    for at in (("rows",), ("environment", "rows")):
        mine, other = state, before
        for key in at:
            mine, other = mine[key], other[key]
        assert_same_state(mine, other)
    top.load_state_dict(state)
    top.recv()
    assert_same_state(state["environment"]["rows"], before["environment"]["rows"])


def test_level_manager_reset_response_is_not_written_to():
    top, _ = build([1, 2], TWO_LEVELS, Clock())
    response = top.reset()
    before = copy.deepcopy(response.first_observation)
    for _ in range(3):
        top.recv()
    assert_same_state(response.first_observation, before)


X = GoalSpace(low=(-3.0,), high=(3.0,), threshold=(0.5,), elements=(0,))


def test_agent_spaces_include_goal_of_level():
    assert agent_spaces(SPACES, NOTHING_RECEIVED) is SPACES
    seen = agent_spaces(SPACES, X)
    assert seen.observation[GOAL_KEY] == X.space
    assert seen.observation["observation"] == SPACES.observation["observation"]
    assert seen.action == SPACES.action
