"""Options, the environment's goals at the top, tested decisions, frozen levels, discounted rewards.

As in `test_level_manager`, a stack is compared with nested loops over one environment, exactly.
"""

import contextlib
from dataclasses import dataclass, field

import numpy as np
import pytest
from gymnasium import spaces
from hypothesis import given, settings
from hypothesis import strategies as st

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.errors import SpaceError
from coach_rl.core.goals import GOAL_KEY, OPTION_KEY, GoalSpace, OptionSpace
from coach_rl.core.records import End, EnvResponse
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.levels import LevelManager

SPACES = EnvironmentSpaces(
    observation=spaces.Dict(
        {
            "observation": spaces.Box(-50, 50, (2,), np.float64),
            GOAL_KEY: spaces.Box(-2, 2, (2,), np.float32),
        }
    ),
    action=spaces.Box(-1, 1, (2,), np.float64),
)
TESTING_SEED = 5


class Walk:
    """One walk towards a goal that moves now and then: drifts, ends by chance or after 13 steps."""

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)
        self.restart()

    def restart(self):
        self.position, self.age = self.rng.uniform(-2, 2, 2), 0
        self.goal = self.rng.uniform(-2, 2, 2).astype(np.float32)

    def step(self, action):
        self.position = self.position + action + self.rng.normal(0, 0.1, 2)
        self.age += 1
        if self.rng.random() < 0.2:
            self.goal = self.rng.uniform(-2, 2, 2).astype(np.float32)
        terminated = bool(self.rng.random() < 0.05)
        return float(self.position.sum()), terminated, self.age >= 13


class Walks:
    """N walks behind the environment contract."""

    spaces = SPACES

    def __init__(self, seeds):
        self.walks, self.num_envs = [Walk(seed) for seed in seeds], len(seeds)
        self.sent = (np.zeros((0, 2)), np.arange(0))

    def seen(self, rows):
        walks = [self.walks[row] for row in rows]
        return {
            "observation": np.array([walk.position for walk in walks]).reshape(-1, 2),
            GOAL_KEY: np.array([walk.goal for walk in walks], np.float32).reshape(-1, 2),
        }

    def reset(self, seed=None):
        rows = np.arange(self.num_envs)
        return self.respond(rows, [(0.0, False, False)] * self.num_envs, 0)

    def send(self, directive, rows=None):
        self.sent = (directive.action, rows)

    def recv(self):
        (actions, rows), self.sent = self.sent, (np.zeros((0, 2)), np.arange(0))
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

    def close(self):
        pass


@dataclass(frozen=True, kw_only=True)
class Level:
    """A `LevelDescription` without an agent."""

    name: str
    goal_space: GoalSpace | OptionSpace | None = None
    horizon: int | None = None
    real_end_is_terminal: bool = False
    testing_rate: float = 0.0
    frozen: bool = False


def decide(below, seen, told):
    """What a scripted agent does: a function of what it sees, what it is told, and to whom."""
    if isinstance(below, OptionSpace):
        return np.int64(np.abs(seen).sum() * 7) % below.count
    if below is not None:
        return (seen + 2 * np.sin(3 * seen)).astype(np.float32)
    if told is None:
        return np.cos(3 * seen)
    if len(told) == 2:
        return np.clip(told - seen, -1, 1)
    angle = 2 * np.pi * np.argmax(told) / len(told)
    return np.array([np.cos(angle), np.sin(angle)])


@dataclass
class Scripted:
    """Remembers every transition, by row; options have 3 elements or more, goals have 2."""

    level: Level
    below: GoalSpace | OptionSpace | None
    transitions: dict = field(default_factory=dict)
    pending: dict = field(default_factory=dict)

    def new_rows(self, num_envs, seed):
        return None

    def told(self, observation, i):
        if self.level.goal_space is None:
            return None
        key = OPTION_KEY if isinstance(self.level.goal_space, OptionSpace) else GOAL_KEY
        return observation[key][i]

    def act(self, row_state, rows, observation, *, starts, fresh, quiet, clock):
        actions = []
        for i, row in enumerate(rows):
            seen, told = observation["observation"][i], self.told(observation, i)
            actions.append(decide(self.below, seen, told))
            told = None if told is None else tuple(told)
            known = (tuple(seen), told, np.array(actions[-1]).tolist())
            self.pending[row] = (*known, bool(starts[i]), bool(quiet[i]), clock.phase)
        return np.array(actions)

    def observe(self, row_state, outcome, *, clock):
        for i, row in enumerate(outcome.rows):
            told = self.told(outcome.observation, i)
            assert self.pending[row][1] == (None if told is None else tuple(told))
            moved_to = outcome.told.get(GOAL_KEY, {i: told})[i]
            came = (
                tuple(outcome.observation["observation"][i]),
                float(outcome.reward[i]),
                bool(outcome.terminated[i]),
                bool(outcome.truncated[i]),
                int(outcome.duration[i]),
                int(outcome.end[i]),
                int(outcome.below[i]),
                bool(outcome.tested[i]),
                None if moved_to is told or (moved_to == told).all() else tuple(moved_to),
            )
            self.transitions.setdefault(int(row), []).append((*self.pending.pop(row), *came))


def build(seeds, levels, phase, discount):
    below, agents = Walks(seeds), []
    for index in reversed(range(len(levels))):
        lower = levels[index + 1].goal_space if index + 1 < len(levels) else None
        agents.append(Scripted(levels[index], lower))
        below = LevelManager(
            levels[index],
            agent=agents[-1],
            environment=below,
            clock=Clock(phase=phase),
            seed=TESTING_SEED,
            above=levels[:index],
            discount=discount,
        )
    below.reset()
    return below, agents[::-1]


class Recursion:
    """One environment played by nested loops until a number of steps is used up."""

    def __init__(self, seed, row, levels, steps, phase, discount):
        self.walk, self.levels, self.steps, self.discount = Walk(seed), levels, steps, discount
        self.row, self.phase = row, phase
        self.transitions = [[] for _ in levels]
        self.noise = [
            RowNoise(num_rows=row + 1, size=1, kind="uniform", seed=TESTING_SEED, name="testing")
            for _ in levels
        ]

    def play(self):
        with contextlib.suppress(StopIteration):
            self.episode(0, None, [], False)
        return self.transitions

    def is_tested(self, depth):
        """Whether the level tests its next decision, of its own accord."""
        rate = self.levels[depth].testing_rate
        if rate == 0 or self.phase is not Phase.TRAIN:
            return False
        return bool(self.noise[depth].draw(np.array([self.row]))[0, 0] < rate)

    def episode(self, depth, told, outer, quiet):  # noqa: C901 - the reference, in one piece
        """Play one sub-episode of a level as it is told; `outer` are the (space, goal) above."""
        level, lowest = self.levels[depth], depth == len(self.levels) - 1
        below = None if lowest else self.levels[depth + 1].goal_space
        is_goal = isinstance(level.goal_space, GoalSpace)
        is_given = is_goal and depth == 0
        decisions, duration, total, starts = 0, 0, 0.0, True
        while True:
            if is_given:
                told = self.walk.goal.copy()
            seen = self.walk.position.copy()
            action = decide(below, seen, told)
            tested = self.is_tested(depth) or quiet
            if lowest:
                if self.steps == 0:
                    raise StopIteration
                self.steps -= 1
                reward, terminated, truncated = self.walk.step(action)
                after, took = self.walk.position.copy(), 1
                real = (terminated * End.TERMINATED) | (truncated * End.TRUNCATED)
                came = real
            else:
                order = (
                    np.eye(below.count, dtype=np.float32)[action]
                    if isinstance(below, OptionSpace)
                    else np.clip(action, -3, 3).astype(np.float32)
                )
                mine = [(level.goal_space, told)] if is_goal else []
                after, reward, took, real, came = self.episode(
                    depth + 1, order, [*outer, *mine], tested
                )
            decisions += 1
            total += reward * self.discount**duration
            duration += took
            end = int(real)
            if level.horizon is not None and decisions >= level.horizon:
                end |= End.HORIZON
            if any((np.abs(after - goal) <= space.threshold[0]).all() for space, goal in outer):
                end |= End.OUTER
            worth, final = reward, bool(real & End.TERMINATED)
            if is_goal:
                reached = bool((np.abs(after - told) <= level.goal_space.threshold[0]).all())
                end |= End.GOAL if reached else 0
                worth = 0.0 if reached else -1.0
                final = reached or (level.real_end_is_terminal and final)
            moved = is_given and not end and (self.walk.goal != told).any()
            self.transitions[depth].append(
                (
                    tuple(seen),
                    None if told is None else tuple(told),
                    np.array(action).tolist(),
                    starts,
                    quiet,
                    Phase.TEST if level.frozen else self.phase,
                    tuple(after),
                    worth,
                    final,
                    bool(end) and not final,
                    took,
                    int(end),
                    int(came),
                    tested,
                    tuple(self.walk.goal) if moved else None,
                )
            )
            starts = bool(end)
            if lowest and real:
                self.walk.restart()
            if end and depth:
                return after, total, duration, real, end
            if end:
                decisions = 0


@st.composite
def stacks(draw):
    """Two to four levels of any kind."""

    def goals():
        threshold = draw(st.floats(0.05, 1.5))
        return GoalSpace(low=(-3.0, -3.0), high=(3.0, 3.0), threshold=(threshold, threshold))

    count = draw(st.integers(2, 4))
    levels = []
    for depth in range(count):
        has_goals = draw(st.booleans())
        other = None if depth == 0 else OptionSpace(count=draw(st.integers(3, 5)))
        levels.append(
            Level(
                name=f"level {depth}",
                goal_space=goals() if has_goals else other,
                horizon=draw(st.integers(1, 5) if depth else st.none() | st.integers(1, 4)),
                real_end_is_terminal=draw(st.booleans()),
                testing_rate=draw(st.sampled_from([0.0, 0.5])) if depth < count - 1 else 0.0,
                frozen=draw(st.booleans()),
            )
        )
    return levels


@settings(max_examples=60, deadline=None)
@given(
    levels=stacks(),
    company=st.integers(1, 4),
    seed=st.integers(0, 10_000),
    phase=st.sampled_from([Phase.TRAIN, Phase.HEATUP, Phase.TEST]),
    discount=st.sampled_from([1.0, 0.5]),
)
def test_levels_of_any_kind_equal_a_plain_recursion(levels, company, seed, phase, discount):
    seeds, ticks = [seed + i for i in range(company)], 50
    top, agents = build(seeds, levels, phase, discount)
    for _ in range(ticks):
        top.recv()
    for row, row_seed in enumerate(seeds):
        expected = Recursion(row_seed, row, levels, ticks, phase, discount).play()
        for level, agent in enumerate(agents):
            assert agent.transitions.get(row, []) == expected[level], f"row {row}, level {level}"


GOALS = GoalSpace(low=(-3.0, -3.0), high=(3.0, 3.0), threshold=(0.5, 0.5))


def test_a_tested_decision_silences_every_level_below_until_it_is_over():
    levels = [
        Level(name="top", testing_rate=0.5),
        Level(name="middle", goal_space=GOALS, horizon=3),
        Level(name="low", goal_space=OptionSpace(count=3), horizon=2),
    ]
    top, agents = build([1], levels, Phase.TRAIN, 1.0)
    for _ in range(60):
        top.recv()
    quiet, tested = 4, -2
    shares = [np.mean([t[tested] for t in agent.transitions[0]]) for agent in agents]
    assert 0 < shares[0] < 1
    for agent in agents[1:]:  # who tests nothing of its own passes on what it is told
        assert all(t[quiet] == t[tested] for t in agent.transitions[0])
        assert 0 < np.mean([t[quiet] for t in agent.transitions[0]]) < 1


def test_rewards_on_their_way_up_are_discounted_by_simulator_steps_at_any_depth():
    levels = [
        Level(name="top"),
        Level(name="middle", goal_space=OptionSpace(count=3), horizon=2),
        Level(name="low", goal_space=OptionSpace(count=4), horizon=3),
    ]
    top, agents = build([3], levels, Phase.TRAIN, 0.9)
    for _ in range(40):
        top.recv()
    steps = iter(agents[2].transitions[0])
    for transition in agents[0].transitions[0]:
        duration = transition[10]
        rewards = [next(steps)[7] for _ in range(duration)]
        assert transition[7] == pytest.approx(np.dot(rewards, 0.9 ** np.arange(duration)))


def test_the_top_has_no_options():
    with pytest.raises(SpaceError, match="level 'top': the top level has no options"):
        build([1], [Level(name="top", goal_space=OptionSpace(count=3))], Phase.TRAIN, 1.0)


def test_goals_of_another_size_than_the_environments_are_refused_at_the_top():
    short = GoalSpace(low=(-3.0,), high=(3.0,), threshold=(0.5,), elements=(0,))
    message = "level 'top': the environment's 'desired_goal' has 2 elements, the goal space 1"
    with pytest.raises(SpaceError, match=message):
        build([1], [Level(name="top", goal_space=short)], Phase.TRAIN, 1.0)
