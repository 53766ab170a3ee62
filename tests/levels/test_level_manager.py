"""A stack of levels equals a plain recursion over one environment, at any depth, in any company.

The reference below knows nothing of rows, ticks or send and recv: it plays one environment by
nested loops. Agents are scripted, so equality is exact.
"""

import contextlib
import itertools
from dataclasses import dataclass, field

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import ActionError, ConfigurationError, SpaceError
from coach_rl.core.goals import GOAL_KEY, GoalSpace
from coach_rl.core.records import Directive, End, EnvResponse
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.levels import LevelManager

SPACES = EnvironmentSpaces(
    observation=spaces.Dict({"observation": spaces.Box(-50, 50, (2,), np.float64)}),
    action=spaces.Box(-1, 1, (2,), np.float64),
)


class Walk:
    """One random walk: drifts by action and noise, ends by chance or after 13 steps."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.restart()

    def restart(self):
        self.position, self.age = self.rng.uniform(-2, 2, 2), 0

    def step(self, action):
        self.position = self.position + action + self.rng.normal(0, 0.1, 2)
        self.age += 1
        terminated = bool(self.rng.random() < 0.05)
        return self.position.copy(), float(self.position.sum()), terminated, self.age >= 13


class Walks:
    """N walks behind the environment contract."""

    spaces = SPACES

    def __init__(self, seeds):
        self.seeds, self.num_envs, self.sent = seeds, len(seeds), None

    def reset(self, seed=None):
        self.walks = [Walk(seed) for seed in self.seeds]
        rows = np.arange(self.num_envs)
        return self.respond(rows, [(walk.position, 0.0, False, False) for walk in self.walks], 0)

    def send(self, directive, rows=None):
        self.sent = (directive.action, rows)

    def recv(self):
        (actions, rows), self.sent = self.sent or (np.zeros((0, 2)), np.arange(0)), None
        return self.respond(
            rows, [self.walks[r].step(a) for r, a in zip(rows, actions, strict=True)], 1
        )

    def respond(self, rows, steps, duration):
        def column(index, dtype, shape=()):
            return np.array([step[index] for step in steps], dtype).reshape(len(rows), *shape)

        last, terminated, truncated = column(0, float, (2,)), column(2, bool), column(3, bool)
        for row in rows[terminated | truncated]:
            self.walks[row].restart()
        first = np.array([self.walks[row].position for row in rows]).reshape(len(rows), 2)
        end = np.where(terminated, End.TERMINATED, 0) | np.where(truncated, End.TRUNCATED, 0)
        return EnvResponse(
            rows=rows,
            observation={"observation": last},
            first_observation={"observation": first},
            reward=column(1, float),
            terminated=terminated,
            truncated=truncated,
            end=end.astype(np.uint8),
            duration=np.full(len(rows), duration),
        )

    def close(self):
        pass


def decide(depth, observation, goal):
    """What a scripted agent does, a function of what it sees; `depth` 0 is the lowest level."""
    if depth == 0:
        return np.clip(goal - observation, -1, 1) if goal is not None else np.cos(observation * 3)
    return (observation + 2 * np.sin(3 * observation + depth)).astype(np.float32)


@dataclass
class Scripted:
    """Remembers every transition, by row."""

    depth: int
    transitions: dict = field(default_factory=dict)
    pending: dict = field(default_factory=dict)

    def new_rows(self, num_envs, seed):
        return None

    def act(self, row_state, request, clock):
        rows, observation, starts = request.rows, request.observation, request.starts
        goals = observation.get(GOAL_KEY, [None] * len(rows))
        actions = [
            decide(self.depth, seen, goal)
            for seen, goal in zip(observation["observation"], goals, strict=True)
        ]
        for i, row in enumerate(rows):
            assert row not in self.pending, "two decisions without an outcome in between"
            goal = None if goals[i] is None else tuple(goals[i])
            self.pending[row] = (
                tuple(observation["observation"][i]),
                goal,
                tuple(actions[i]),
                bool(starts[i]),
            )
        return np.array(actions)

    def observe(self, row_state, outcome, clock):
        for i, row in enumerate(outcome.rows):
            known = self.pending.pop(row)
            came = (
                tuple(outcome.observation["observation"][i]),
                float(outcome.reward[i]),
                bool(outcome.terminated[i]),
                bool(outcome.truncated[i]),
                int(outcome.duration[i]),
                int(outcome.end[i]),
                int(outcome.below[i]),
            )
            self.transitions.setdefault(int(row), []).append((*known, *came))


def goal_space(threshold):
    return GoalSpace(low=(-3.0, -3.0), high=(3.0, 3.0), threshold=(threshold, threshold))


@dataclass(frozen=True, kw_only=True)
class Level:
    """A `LevelDescription` without an agent."""

    name: str = "low"
    goal_space: GoalSpace | None = None
    horizon: int | None = None
    real_end_is_terminal: bool = False
    testing_rate: float = 0.0
    frozen: bool = False


TOP = Level(name="top")


def described_levels(levels):
    below = [
        Level(name=f"level {index}", goal_space=goal_space(threshold), horizon=horizon)
        for index, (horizon, threshold) in enumerate(levels, start=1)
    ]
    return [TOP, *below]


def build(seeds, levels):
    """`levels` lists (horizon, threshold) from the level below the top down to the lowest."""
    below, agents = Walks(seeds), []
    for index in reversed(range(len(levels) + 1)):
        agent = Scripted(depth=len(levels) - index)
        described = described_levels(levels)
        below = LevelManager(
            described[index],
            agent=agent,
            environment=below,
            clock=Clock(phase=Phase.TRAIN),
            seed=0,
            above=described[:index],
        )
        agents.append(agent)
    below.reset()
    return below, agents[::-1]


def low(level, agent=None, *, seeds=(1,), clock=None):
    """A level below a top that sends it goals."""
    return LevelManager(
        level,
        agent=agent or Scripted(0),
        environment=Walks(list(seeds)),
        clock=clock or Clock(),
        seed=0,
        above=(TOP,),
    )


class Recursion:
    """One environment played by nested loops until a number of steps is used up."""

    def __init__(self, seed, levels, steps):
        self.walk, self.steps = Walk(seed), steps
        self.horizons = [None, *(horizon for horizon, _ in levels)]
        self.spaces = [None, *(goal_space(threshold) for _, threshold in levels)]
        self.transitions = [[] for _ in self.horizons]

    def play(self):
        with contextlib.suppress(StopIteration):
            self.episode(0, [])
        return self.transitions

    def episode(self, level, goals):
        """Play one sub-episode of `level` under `goals`, the own one last; what goes up."""
        lowest, decisions, duration, total = level == len(self.horizons) - 1, 0, 0, 0.0
        starts = True
        while True:
            seen, goal = self.walk.position.copy(), goals[-1] if level else None
            action = decide(len(self.horizons) - 1 - level, seen, goal)
            if lowest:
                if self.steps == 0:
                    raise StopIteration
                self.steps -= 1
                after, reward, terminated, truncated = self.walk.step(action)
                took, real = (
                    1,
                    (End.TERMINATED if terminated else 0) | (End.TRUNCATED if truncated else 0),
                )
                below = real
            else:
                target = np.clip(action, -3, 3).astype(np.float32)
                after, reward, took, real, below = self.episode(level + 1, [*goals, target])
            decisions, duration, total = decisions + 1, duration + took, total + reward
            end = real
            if level:
                reached = [
                    bool((np.abs(after - g) <= space.threshold[0]).all())
                    for g, space in zip(goals, self.spaces[1:], strict=False)
                ]
                end |= (End.GOAL if reached[-1] else 0) | (End.OUTER if any(reached[:-1]) else 0)
                end |= End.HORIZON if decisions >= self.horizons[level] else 0
                worth, final = (0.0 if reached[-1] else -1.0), reached[-1]
            else:
                worth, final = reward, bool(real & End.TERMINATED)
            cut = bool(end) and not final
            self.transitions[level].append(
                (
                    tuple(seen),
                    None if goal is None else tuple(goal),
                    tuple(action),
                    starts,
                    tuple(after),
                    worth,
                    final,
                    cut,
                    took,
                    int(end),
                    int(below),
                )
            )
            starts = bool(end)
            if lowest and real:
                self.walk.restart()
            if level and end:
                return after, total, duration, real, end


LEVELS = st.lists(st.tuples(st.integers(1, 5), st.floats(0.05, 1.5)), max_size=3)


@settings(max_examples=60, deadline=None)
@given(levels=LEVELS, company=st.integers(1, 5), seed=st.integers(0, 10_000))
def test_any_stack_in_any_company_equals_a_plain_recursion(levels, company, seed):
    seeds = [seed + i for i in range(company)]
    top, agents = build(seeds, levels)
    ticks = 60
    for _ in range(ticks):
        top.recv()
    for row, row_seed in enumerate(seeds):
        expected = Recursion(row_seed, levels, ticks).play()
        for level, agent in enumerate(agents):
            assert agent.transitions.get(row, []) == expected[level], f"row {row}, level {level}"


@given(levels=LEVELS)
@settings(max_examples=15, deadline=None)
def test_every_step_is_one_transition_at_the_lowest_level(levels):
    top, agents = build([1, 2, 3], levels)
    for _ in range(40):
        top.recv()
    assert [len(agents[-1].transitions[row]) for row in range(3)] == [40, 40, 40]
    for upper, lower in itertools.pairwise(agents):
        for row in range(3):
            ended = sum(1 for transition in lower.transitions[row] if transition[-2])
            assert len(upper.transitions.get(row, [])) == ended


def test_state_saved_in_mid_sub_episode_goes_on_identically():
    levels = [(4, 0.3), (3, 0.3)]

    class Saved(Scripted):
        def new_rows(self, num_envs, seed):
            return Empty()

    class Empty:
        def state_dict(self):
            return {}

        def load_state_dict(self, state):
            pass

    def fields(level):
        names = (
            "open",
            "waiting",
            "starts",
            "fresh",
            "tested",
            "testing_below",
            "decisions",
            "steps",
            "reward",
            "return",
            "goal",
            "difference_at_start",
        )
        return {name: getattr(level, f"_{name}").copy() for name in names}

    top, _ = build([1, 2, 3], levels)
    for _ in range(7):
        top.recv()
    middle = top.environment
    assert middle._decisions.any(), "the test wants open sub-episodes"
    middle.environment.environment.state_dict = dict
    middle.environment.environment.load_state_dict = lambda state: None
    for level in (top, middle, middle.environment):
        level._row_state = Empty()
    state = top.state_dict()
    other, _ = build([1, 2, 3], levels)
    lowest = other.environment.environment
    lowest.environment.state_dict, lowest.environment.load_state_dict = dict, lambda state: None
    for level in (other, other.environment, lowest):
        level._row_state = Empty()
    other.load_state_dict(state)
    for ours, theirs in ((top, other), (middle, other.environment), (middle.environment, lowest)):
        for name, value in fields(ours).items():
            np.testing.assert_array_equal(value, fields(theirs)[name], err_msg=name)
    before = state["decisions"].copy()
    top.recv()
    np.testing.assert_array_equal(state["decisions"], before)


def test_a_busy_row_takes_no_second_goal():
    top, _ = build([1], [(5, 0.01)])
    top.recv()
    low = top.environment
    if low._open[0]:
        with pytest.raises(ActionError, match="row 0 is still busy"):
            low.send(Directive(action=np.zeros((1, 2), np.float32), outer_goals=()), np.array([0]))


def test_a_horizon_of_zero_names_the_level():
    with pytest.raises(ConfigurationError, match="level 'low': horizon must be 1 or more, got 0"):
        low(Level(goal_space=goal_space(0.1), horizon=0))


def test_a_goal_that_is_not_observed_is_refused():
    strange = GoalSpace(low=(0.0,), high=(1.0,), threshold=(0.1,), key="elsewhere")
    with pytest.raises(SpaceError, match="level 'low': the goal's key 'elsewhere' is not observed"):
        low(Level(goal_space=strange))


def test_sub_goals_are_clipped_to_their_bounds():
    top, agents = build([5], [(3, 0.1)])
    for _ in range(20):
        top.recv()
    goals = np.array([transition[1] for transition in agents[-1].transitions[0]])
    assert np.abs(goals).max() <= 3.0


def test_levels_tell_how_far_away_goals_were_when_they_were_given():
    agent = Scripted(0)
    level = low(Level(goal_space=goal_space(0.01), horizon=3), agent, seeds=(1, 2))
    level.reset()
    level.send(Directive(action=np.array([[2.0, 2.0], [-3.0, 1.0]], np.float32)))
    while not len(level.recv().rows):
        pass
    first = [transitions[0] for transitions in agent.transitions.values()]
    begun = [np.hypot(*np.subtract(goal, seen)) for seen, goal, *_ in first]
    told = level.sub_episodes.drain()
    assert told["sub_episodes"] == 2
    assert told["distance_at_start"] == pytest.approx(np.mean(begun))
    assert told["distance_at_start"] > told["distance"] + 1


def test_tested_decisions_silence_the_levels_below():
    quiet_seen = []

    class Listening(Scripted):
        def act(self, row_state, request, clock):
            quiet_seen.append(request.greedy.copy())
            return super().act(row_state, request, clock)

    level = low(Level(goal_space=goal_space(0.01), horizon=3), Listening(0), seeds=(1, 2))
    level.reset()
    level.send(Directive(action=np.zeros((2, 2), np.float32), tested=np.array([True, False])))
    level.recv()
    assert quiet_seen[0].tolist() == [True, False]
