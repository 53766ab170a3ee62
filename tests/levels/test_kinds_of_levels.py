"""Levels of every kind: options, relative goals, angles, tested decisions, frozen levels, phases.

As in `test_level_manager`, a stack is compared with nested loops over one environment.
"""

import copy
from dataclasses import asdict, dataclass, field

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st
from plain_stack import TESTING_SEED, Level, Recursion, Totals, Walk, decide

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import SpaceError
from coach_rl.core.goals import GOAL_KEY, OPTION_KEY, GoalSpace, OptionSpace
from coach_rl.core.records import End, EnvResponse
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.levels import LevelManager

SPACES = EnvironmentSpaces(
    observation=spaces.Dict(
        {
            "observation": spaces.Box(-50, 50, (3,), np.float64),
            GOAL_KEY: spaces.Box(-2, 2, (3,), np.float32),
        }
    ),
    action=spaces.Box(-1, 1, (3,), np.float64),
)


class Walks:
    """N walks behind the environment contract."""

    spaces = SPACES

    def __init__(self, seeds):
        self.walks, self.num_envs = [Walk(seed) for seed in seeds], len(seeds)
        self.sent = (np.zeros((0, 3)), np.arange(0))

    def seen(self, rows):
        walks = [self.walks[row] for row in rows]
        return {
            "observation": np.array([walk.position for walk in walks]).reshape(-1, 3),
            GOAL_KEY: np.array([walk.goal for walk in walks], np.float32).reshape(-1, 3),
        }

    def reset(self, seed=None):
        rows = np.arange(self.num_envs)
        return self.respond(rows, [(0.0, False, False)] * self.num_envs, 0)

    def send(self, directive, rows=None):
        self.sent = (directive.action, rows)

    def recv(self):
        (actions, rows), self.sent = self.sent, (np.zeros((0, 3)), np.arange(0))
        steps = [self.walks[r].step(a) for r, a in zip(rows, actions, strict=True)]
        return self.respond(rows, steps, 1)

    def respond(self, rows, steps, duration):
        last = self.seen(rows)
        terminated = np.array([step[1] for step in steps], bool)
        truncated = np.array([step[2] for step in steps], bool)
        for row in rows[terminated | truncated]:
            self.walks[row].restart()
        end = np.where(terminated, End.TERMINATED, 0) | np.where(truncated, End.TRUNCATED, 0)
        return EnvResponse(
            rows=rows,
            observation=last,
            first_observation=self.seen(rows),
            reward=np.array([step[0] for step in steps]),
            terminated=terminated,
            truncated=truncated,
            end=end.astype(np.uint8),
            duration=np.full(len(rows), duration),
        )

    def state_dict(self):
        return {"walks": copy.deepcopy(self.walks)}

    def load_state_dict(self, state):
        self.walks = copy.deepcopy(state["walks"])

    def close(self):
        pass


@dataclass
class Pending:
    """What is known of each row's open decision."""

    decisions: dict = field(default_factory=dict)

    def state_dict(self):
        return copy.deepcopy(self.decisions)

    def load_state_dict(self, state):
        self.decisions = copy.deepcopy(state)


@dataclass
class Scripted:
    """Acts by the rule in `plain_stack` and remembers every transition, by row."""

    level: Level
    below: GoalSpace | OptionSpace | None
    space: spaces.Space
    """Where it acts."""
    transitions: dict = field(default_factory=dict)

    def new_rows(self, num_envs, seed):
        return Pending()

    def told(self, observation, i):
        if self.level.goal_space is None:
            return None
        key = OPTION_KEY if isinstance(self.level.goal_space, OptionSpace) else GOAL_KEY
        return observation[key][i]

    def act(self, row_state, request, clock):
        observation, actions = request.observation, []
        for i, row in enumerate(request.rows):
            assert row not in row_state.decisions, "two decisions without an outcome in between"
            seen, told = observation["observation"][i], self.told(observation, i)
            action = decide(self.level.goal_space, self.below, seen, told)
            if isinstance(self.space, spaces.Box):
                action = np.clip(action, self.space.low, self.space.high)
            actions.append(action)
            row_state.decisions[row] = {
                "seen": seen.tolist(),
                "told": None if told is None else told.tolist(),
                "action": np.array(action).tolist(),
                "starts": bool(request.starts[i]),
                "fresh": bool(request.episode_start[i]),
                "quiet": bool(request.greedy[i]),
                "phase": clock.phase,
            }
        return np.array(actions)

    def observe(self, row_state, outcome, clock):
        moved = outcome.told
        for i, row in enumerate(outcome.rows):
            told = self.told(outcome.observation, i)
            came = {
                "after": outcome.observation["observation"][i].tolist(),
                "told after": None if told is None else told.tolist(),
                "told next": None if told is None else moved.get(GOAL_KEY, {i: told})[i].tolist(),
                "reward": float(outcome.reward[i]),
                "terminated": bool(outcome.terminated[i]),
                "truncated": bool(outcome.truncated[i]),
                "duration": int(outcome.duration[i]),
                "end": int(outcome.end[i]),
                "below": int(outcome.below[i]),
                "tested": bool(outcome.tested[i]),
            }
            kept = self.transitions.setdefault(int(row), [])
            kept.append({**row_state.decisions.pop(row), **came})


def build(seeds, levels, clock, discount=1.0):
    below, agents = Walks(seeds), []
    for index in reversed(range(len(levels))):
        lower = levels[index + 1].goal_space if index + 1 < len(levels) else None
        agents.append(Scripted(levels[index], lower, below.spaces.action))
        below = LevelManager(
            levels[index],
            agent=agents[-1],
            environment=below,
            clock=clock,
            seed=TESTING_SEED,
            above=levels[:index],
            discount=discount,
        )
    below.reset()
    return below, agents[::-1]


def managers(top):
    """The levels of a stack, top first."""
    return [top, *(managers(top.environment) if isinstance(top.environment, LevelManager) else [])]


@st.composite
def goal_spaces(draw, *, is_top=False):
    """Any goals of the walk's x, y and angle; those of the top are all three."""
    elements = draw(st.permutations([0, 1, 2]))
    elements = tuple(elements[: 3 if is_top else draw(st.sampled_from([3, 2, 1, 3]))])
    is_angle = 2 in elements and draw(st.booleans())
    high = [draw(st.sampled_from([1.0, 3.0])) for _ in elements]
    low = [-bound for bound in high]
    angles = (elements.index(2),) if is_angle else ()
    for element in angles:
        low[element], high[element] = -np.pi, np.pi
    is_relative = draw(st.booleans())
    reach = tuple(draw(st.sampled_from([0.5, 1.5])) for _ in elements)
    return GoalSpace(
        low=tuple(low),
        high=tuple(high),
        threshold=tuple(draw(st.sampled_from([0.3, 0.8, 1.6])) for _ in elements),
        elements=None if elements == (0, 1, 2) else elements,
        angles=angles,
        relative=is_relative,
        reach=reach if is_relative and draw(st.booleans()) else None,
        observed=draw(st.sampled_from(["absolute", "relative"])),
        reward=draw(st.sampled_from(["sparse", "dense"])),
        reached_within=draw(st.sampled_from(["elements", "ball"])),
    )


@st.composite
def stacks(draw):
    """Two to four levels of any kind."""
    count = draw(st.sampled_from([3, 2, 4]))
    levels = []
    for depth in range(count):
        has_goals = draw(st.sampled_from([True, False, True, True]))
        other = None if depth == 0 else OptionSpace(count=draw(st.integers(3, 5)))
        levels.append(
            Level(
                name=f"level {depth}",
                goal_space=draw(goal_spaces(is_top=depth == 0)) if has_goals else other,
                horizon=draw(st.integers(1, 5) if depth else st.none() | st.integers(1, 4)),
                real_end_is_terminal=draw(st.booleans()),
                testing_rate=draw(st.sampled_from([0.0, 0.5])),
                frozen=draw(st.booleans()),
            )
        )
    return levels


PHASES = st.lists(
    st.tuples(st.sampled_from(list(Phase)), st.integers(10, 30)), min_size=1, max_size=4
)


def assert_same_transitions(found, expected, where):
    """Equal to the bit, but for what dense rewards add up in another order."""
    assert len(found) == len(expected), where
    for number, (mine, other) in enumerate(zip(found, expected, strict=True)):
        assert mine["reward"] == pytest.approx(other["reward"], abs=1e-9), (where, number)
        assert {**mine, "reward": 0} == {**other, "reward": 0}, (where, number)


def added(totals):
    """Sums over the rows."""
    return {
        name: sum(getattr(each, name) for each in totals)
        for name in asdict(Totals())
        if name != "ends"
    } | {bit: sum(each.ends[bit] for each in totals) for bit in End}


def means(totals):
    """What a level should tell of its sub-episodes, given those of each row."""
    sums, told = added(totals), {}
    if count := sums["sub_episodes"]:
        told = {
            "sub_episodes": count,
            "distance_at_start": sums["distance_at_start"] / count,
            "distance": sums["distance"] / count,
            "decisions": sums["decisions"] / count,
            "return": sums["returns"] / count,
            **{f"{bit.name.lower()}_share": sums[bit] / count for bit in End},
        }
    if sums["decided"]:
        told["tested_share"] = sums["tested"] / sums["decided"]
        told["penalised_share"] = sums["penalised"] / sums["decided"]
    return told


@settings(max_examples=100, deadline=None)
@given(
    levels=stacks(),
    company=st.integers(1, 4),
    seed=st.integers(0, 10_000),
    stretches=PHASES,
    discount=st.sampled_from([1.0, 0.5]),
    saved_at=st.integers(0, 40),
)
def test_levels_of_any_kind_equal_a_plain_recursion(
    levels, company, seed, stretches, discount, saved_at
):
    seeds, clock = [seed + i for i in range(company)], Clock()
    phases = [phase for phase, ticks in stretches for _ in range(ticks)]
    top, agents = build(seeds, levels, clock, discount)
    for tick, clock.phase in enumerate(phases):
        if tick == saved_at:  # in the middle of whatever is open
            state, before = top.state_dict(), agents
            top, agents = build([99] * company, levels, clock, discount)
            top.load_state_dict(state)
            for mine, other in zip(agents, before, strict=True):
                mine.transitions = other.transitions
        top.recv()
    expected = [
        Recursion(row_seed, row, levels, phases, discount).play()
        for row, row_seed in enumerate(seeds)
    ]
    for depth, (agent, manager) in enumerate(zip(agents, managers(top), strict=True)):
        for row, each in enumerate(expected):
            found = agent.transitions.get(row, [])
            assert_same_transitions(found, each.transitions[depth], f"row {row}, level {depth}")
        told = means([each.totals[depth] for each in expected])
        assert manager.sub_episodes.drain() == pytest.approx(told, rel=1e-9, abs=1e-9)


GOALS = GoalSpace(low=(-3.0, -3.0), high=(3.0, 3.0), threshold=(0.5, 0.5), elements=(0, 1))


def test_a_tested_decision_silences_every_level_below_until_it_is_over():
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


def test_rewards_on_their_way_up_are_discounted_by_simulator_steps_at_any_depth():
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


def test_the_top_has_no_options():
    with pytest.raises(SpaceError, match="level 'top': the top level has no options"):
        build([1], [Level(name="top", goal_space=OptionSpace(count=3))], Clock())


def test_goals_of_another_size_than_the_environments_are_refused_at_the_top():
    short = GoalSpace(low=(-3.0,), high=(3.0,), threshold=(0.5,), elements=(0,))
    message = "level 'top': the environment's 'desired_goal' has 3 elements, the goal space 1"
    with pytest.raises(SpaceError, match=message):
        build([1], [Level(name="top", goal_space=short)], Clock())
