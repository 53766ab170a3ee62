"""Levels that form a graph equal a plain recursion over one environment, in any company."""

import copy
from collections import Counter
from dataclasses import dataclass, replace

import numpy as np
import pytest
from gymnasium import spaces
from plain_graph import ENDS, Play, graph_of, plain, random_graph, rule

from coach_rl.core.clock import Clock, Phase
from coach_rl.core.infos import Sums
from coach_rl.core.records import Fault
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.seeding import integer_seed
from coach_rl.extensions.testing.states import assert_same_state
from coach_rl.graph_managers.stack import TickSource
from tests.levels.plain_stack import Level, Walk
from tests.levels.scripted_stack import Scripted, Walks

SEED = 5


@dataclass
class GraphScripted(Scripted):
    """Acts by the rule of `plain_graph`, and remembers where it was cut off."""

    levels: list[Level] = None
    index: int = 0

    def chosen(self, row_state, request, clock):
        links, observation = graph_of(self.levels).links(self.levels), request.observation
        made = [
            rule(
                self.levels,
                links,
                self.index,
                observation["observation"][i],
                self.told(observation, i),
            )
            for i in range(len(request.rows))
        ]
        if isinstance(self.space, spaces.Dict):
            return {key: np.array([each[key] for each in made]) for key in self.space.spaces}
        return np.array(made)

    def act(self, row_state, request, clock):
        action, observation = self.chosen(row_state, request, clock), request.observation
        for i, row in enumerate(request.rows):
            assert row not in row_state.decisions, "two decisions without an outcome in between"
            told = self.told(observation, i)
            mine = {k: v[i] for k, v in action.items()} if isinstance(action, dict) else action[i]
            row_state.decisions[row] = {
                "seen": observation["observation"][i].tolist(),
                "told": None if told is None else told.tolist(),
                "action": plain(mine),
                "starts": bool(request.starts[i]),
                "fresh": bool(request.episode_start[i]),
                "quiet": bool(request.greedy[i]),
                "phase": clock.phase,
            }
        return action

    def observe(self, row_state, outcome, clock):
        assert (np.diff(outcome.rows) > 0).all(), "rows in another order"
        super().observe(row_state, outcome, clock)
        for row in outcome.rows:
            del self.transitions[int(row)][-1]["told next"]

    def cut_off(self, row_state, rows, clock):
        for row in rows.tolist():
            row_state.decisions.pop(row, None)  # open where a simulator has failed
            self.transitions.setdefault(row, []).append({"cut off": clock.phase})


class OrderedWalks(Walks):
    """Walks that are sent one action of each row, in the order of rows."""

    def send(self, directive, rows=None):
        assert len(self.sent[1]) == 0, "sent twice in a tick"
        assert (np.diff(rows) > 0).all(), "rows in another order"
        super().send(directive, rows)


def built(levels, seeds, clock, discount, walks=None):
    """A stack around scripted agents, and these, top first."""
    agents = {}

    def agent(index, of):
        if index not in agents:
            agents[index] = GraphScripted(
                levels[index], None, of.action, len(seeds), levels=levels, index=index
            )
        return agents[index]

    stack = graph_of(levels).build_stack(
        levels,
        OrderedWalks(seeds) if walks is None else walks,
        agent=agent,
        clock=clock,
        seed=SEED,
        purpose="training",
        signals=None,
        sums=Sums(discount=discount),
    )
    stack.reset(0)
    return stack, [agents[index] for index in range(len(levels))]


def case(number):
    """A random graph, the phases of its steps, the seeds of its rows, and its discount."""
    rng = np.random.default_rng(number)
    levels = random_graph(rng)
    phases = [Phase.HEATUP] * 5 + [Phase.TRAIN] * 25 + [Phase.TEST] * 10
    seeds = rng.integers(0, 1000, int(rng.integers(1, 4))).tolist()
    return levels, phases, seeds, float(rng.choice([1.0, 0.9]))


def played(levels, phases, seeds, discount):
    """The recursions of environments with these seeds."""

    def noise(level):
        seed = integer_seed(SEED, "training", level.name)
        return RowNoise(num_rows=len(seeds), size=1, kind="uniform", seed=seed, name="testing")

    streams = {index: noise(level) for index, level in enumerate(levels)}
    links = graph_of(levels).links(levels)
    return [
        Play(levels, links, phases, discount, row, streams, Walk(seed)).run()
        for row, seed in enumerate(seeds)
    ]


def figures(play, levels, links, index):
    """What a level's log should show of some plays together."""
    totals = sum((each.totals[index] for each in play), start=type(play[0].totals[0])())
    found, count = {}, totals["count"]
    if count:
        found = {f"{name}_share": totals[name] / count for name in ENDS}
        found |= {"sub_episodes": count, "decisions": totals["decisions"] / count}
    chosen = {levels[each].name: totals[f"chosen {levels[each].name}"] for each in links[index]}
    if len(chosen) > 1 and sum(chosen.values()):
        shares = {name: each / sum(chosen.values()) for name, each in chosen.items()}
        found |= {f"selected_share/{name}": share for name, share in shares.items()}
    return found


def advanced(stack, clock, phases):
    """Make a tick in each phase."""
    for phase in phases:
        clock.phase = phase
        stack.tick()


def assert_equal(agents, plays, case):
    """Every level has made the transitions of the recursions, in every row."""
    for index, agent in enumerate(agents):
        for row, play in enumerate(plays):
            found, expected = agent.transitions.get(row, []), play.transitions[index]
            assert len(found) == len(expected), (case, index, row)
            for number, (mine, other) in enumerate(zip(found, expected, strict=True)):
                where = (case, agent.level.name, row, number)
                reward = other.get("reward", 0.0)
                assert mine.get("reward", 0.0) == pytest.approx(reward, abs=1e-9), where
                assert {**mine, "reward": reward} == {**other, "reward": reward}, where


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    "block", [pytest.param(n, marks=() if n < 3 else pytest.mark.slow) for n in range(20)]
)
def test_random_graph_equals_plain_recursion(block):
    for number in range(20 * block, 20 * block + 20):
        levels, phases, seeds, discount = case(number)
        clock = Clock()
        stack, agents = built(levels, seeds, clock, discount)
        advanced(stack, clock, phases)
        plays = played(levels, phases, seeds, discount)
        assert_equal(agents, plays, number)
        for index, level in enumerate(stack.levels):
            logged, links = level.drain(), graph_of(levels).links(levels)
            for name, value in figures(plays, levels, links, index).items():
                assert logged.get(name, 0.0) == pytest.approx(value), (number, index, name)


def test_random_graphs_have_all_that_graphs_can():
    seen = Counter()
    for number in range(30):
        levels, phases, seeds, discount = case(number)
        links = graph_of(levels).links(levels)
        for play in played(levels, phases, seeds, discount):
            for index, made in enumerate(play.transitions):
                parents = [each for each in range(index) if index in links[each]]
                seen["shared"] += len(parents) > 1 and bool(made)
                seen["cut off"] += sum("cut off" in each for each in made)
                seen["selected"] += len(links[index]) > 1 and bool(made)
                preempted = any(levels[each].preempt for each in parents)
                seen["kept"] += preempted and any(not each.get("starts", True) for each in made)
                seen["no goals"] += bool(parents) and levels[index].goal_space is None
    assert min(seen[each] for each in ("shared", "cut off", "selected", "kept", "no goals")) > 5


@pytest.mark.drawn(one_of=2)
@pytest.mark.parametrize("tick", [3, 8, 17, 22])
def test_graph_resumed_between_any_ticks_continues_bit_for_bit(tick):
    for number in range(20 * tick, 20 * tick + 6):
        levels, phases, seeds, discount = case(number)
        clocks = [Clock(), Clock()]
        whole, agents = built(levels, seeds, clocks[0], discount)
        advanced(whole, clocks[0], phases[:tick])
        state = copy.deepcopy(whole.state_dict())
        other, resumed = built(levels, seeds, clocks[1], discount)
        other.load_state_dict(state)
        before = [copy.deepcopy(agent.transitions) for agent in agents]
        for stack, clock in zip((whole, other), clocks, strict=True):
            advanced(stack, clock, phases[tick:])
        for part in ("levels", "routes"):
            assert_same_state(other.state_dict()["top"][part], whole.state_dict()["top"][part])
        for level, resumed_level in zip(whole.levels, other.levels, strict=True):
            assert level.drain() == resumed_level.drain()
        for first, agent, continued in zip(before, agents, resumed, strict=True):
            for row, made in agent.transitions.items():
                assert first.get(row, []) + continued.transitions.get(row, []) == made


class FirstAndLast(TickSource):
    """Ticks of the first and the last of three rows."""

    def begin(self, stack):
        return np.array([True, False, True])


def test_tick_of_some_rows_leaves_the_others():
    levels, _, _, discount = case(7)
    clock = Clock(phase=Phase.TRAIN)
    stack, agents = built(levels, [1, 2, 3], clock, discount)
    stack = replace(stack, source=FirstAndLast())
    for _ in range(10):
        stack.tick()
    steps = {row: len(made) for row, made in agents[-1].transitions.items()}
    assert 1 not in steps
    plays = played(levels, [Phase.TRAIN] * 10, [1, 2, 3], discount)
    plays[1].transitions = [[] for _ in levels]
    assert_equal(agents, plays, 7)


class Faulty(Walks):
    """Walks of which one fails at a step, and is begun again."""

    def __init__(self, seeds, fails_at):
        super().__init__(seeds)
        self.fails_at, self.steps = fails_at, 0

    def recv(self):
        self.steps += 1
        if self.steps != self.fails_at:
            return super().recv()
        (actions, rows), self.sent = self.sent, (np.zeros((0, 3)), np.arange(0))
        steps = [
            self.walks[row].step(action) if row else (0.0, False, True)
            for row, action in zip(rows, actions, strict=True)
        ]
        response = self.respond(rows, steps, 1)
        fault = Fault(cause="raised", row=0, message="it fell")
        duration = np.where(rows == 0, 0, response.duration)
        return replace(response, duration=duration, faults=(fault,))


@pytest.mark.parametrize("number", range(12))
def test_failure_of_a_simulator_voids_the_decisions_of_its_row_alone(number):
    levels, _, _, discount = case(number)
    clock = Clock(phase=Phase.TRAIN)
    stack, agents = built(levels, [1, 2], clock, discount, walks=Faulty([1, 2], fails_at=9))
    advanced(stack, clock, [Phase.TRAIN] * 20)
    lowest = [each for each, below in enumerate(graph_of(levels).links(levels)) if not below]
    made = [agents[each].transitions.get(row, []) for row in (0, 1) for each in lowest]
    steps = [sum("cut off" not in each for each in of) for of in made]
    half = len(lowest)
    assert (sum(steps[:half]), sum(steps[half:])) == (19, 20)
    _, unharmed = built(levels, [1, 2], clock, discount)
    plays = played(levels, [Phase.TRAIN] * 20, [1, 2], discount)
    for index, agent in enumerate(agents):
        unharmed[index].transitions = {1: agent.transitions.get(1, [])}
        plays[0].transitions[index] = []
    assert_equal(unharmed, plays, number)
