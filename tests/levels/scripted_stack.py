"""A stack of real levels around scripted agents, on the walks of `plain_stack`."""

import copy
from dataclasses import dataclass, field
from functools import partial

import numpy as np
from gymnasium import spaces

from coach_rl.agents.agent_rows import AgentRows
from coach_rl.agents.filtered_agent import FilteredAgent, FilteredAgentParameters
from coach_rl.core.agents import AgentContext
from coach_rl.core.clock import Clock
from coach_rl.core.goals import GOAL_KEY, TIME_KEY, GoalSpace
from coach_rl.core.infos import Sums
from coach_rl.core.options import OPTION_KEY, OptionSpace
from coach_rl.core.records import HIDDEN_STATE, ActionInfo, End, EnvResponse, Fault
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.recurrent_layers.stage import HiddenState, HiddenStates
from coach_rl.levels import LevelManager
from tests.levels.plain_stack import (
    SPACES,
    TESTING_SEED,
    Level,
    Walk,
    decide,
    longest_of,
    remembered_after,
    seen_with,
    stops,
)


class Walks:
    """N walks behind the environment contract."""

    spaces = SPACES

    def __init__(self, seeds, failing=0.0):
        self.walks, self.num_envs = [Walk(seed, failing) for seed in seeds], len(seeds)
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
        lost = np.array([self.walks[row].fails() for row in rows], bool)
        steps = [
            (0.0, False, True) if fails else self.walks[row].step(action)
            for row, action, fails in zip(rows, actions, lost, strict=True)
        ]
        faults = tuple(Fault(cause="raised", row=row, message="x") for row in rows[lost].tolist())
        return self.respond(rows, steps, 1 - lost, faults)

    def respond(self, rows, steps, duration, faults=()):
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
            duration=np.full(len(rows), duration, np.int64),
            faults=faults,
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

    num_envs: int
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
    num_envs: int
    transitions: dict = field(default_factory=dict)

    def new_rows(self, num_envs, seed):
        return Pending(num_envs)

    def told(self, observation, i):
        if self.level.goal_space is None:
            return None
        key = OPTION_KEY if isinstance(self.level.goal_space, OptionSpace) else GOAL_KEY
        told = observation[key][i]
        if longest_of(self.level.goal_space) is not None:
            return np.append(told, observation[TIME_KEY][i])
        return told

    def chosen(self, row_state, request, clock):
        """Actions by the rule."""
        observation, actions = request.observation, []
        for i in range(len(request.rows)):
            seen, told = observation["observation"][i], self.told(observation, i)
            action = decide(self.level.goal_space, self.below, seen, told)
            if isinstance(self.space, spaces.Box):
                action = np.clip(action, self.space.low, self.space.high)
            actions.append(action)
        return np.array(actions)

    def act(self, row_state, request, clock):
        actions, observation = self.chosen(row_state, request, clock), request.observation
        for i, row in enumerate(request.rows):
            is_free = row_state.decisions.get(row, {"is cut": True}).get("is cut")
            assert is_free, "two decisions without an outcome in between"
            told = self.told(observation, i)
            row_state.decisions[row] = {
                "seen": observation["observation"][i].tolist(),
                "told": None if told is None else told.tolist(),
                "action": actions[i].tolist(),
                "starts": bool(request.starts[i]),
                "fresh": bool(request.episode_start[i]),
                "quiet": bool(request.greedy[i]),
                "phase": clock.phase,
            }
        return actions

    def cut_off(self, row_state, rows, clock):
        for row in rows:  # its open decision may have no outcome
            row_state.decisions.get(row, {})["is cut"] = True

    def observe(self, row_state, outcome, clock):
        moved = outcome.next_goal
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
                "heard": clock.phase,
            }
            kept = self.transitions.setdefault(int(row), [])
            decided = row_state.decisions.pop(row)
            decided.pop("is cut", None)
            kept.append({**decided, **came})


class Ending(Scripted):
    """The same, who ends options itself."""

    def ends(self, row_state, rows, observation, clock):
        assert set(rows.tolist()) <= set(row_state.decisions), "asked before it is told"
        return stops(observation["observation"])


class ElementwiseCell(FilteredAgent):
    """Acts by the same rule, on what it sees and has seen: all that a recurrent agent needs."""

    def __init__(self, level, below, space):
        spaces = EnvironmentSpaces(observation=SPACES.observation, action=space)
        params = FilteredAgentParameters(name=level.name)
        super().__init__(params, AgentContext(spaces=spaces, num_envs=1))
        self.stages.add(HiddenStates(HiddenState(size=3, reset=level.remembers)))
        self.decide = partial(decide, level.goal_space, below)
        self.told = Scripted(level, below, space, 0).told

    def new_rows(self, num_envs, seed):
        noise = RowNoise(num_rows=num_envs, size=1, kind="uniform", seed=seed, name="none")
        return self._rows(num_envs, seed, noise)

    def choose(self, row_state, request, clock):
        observation = request.observation
        memory = remembered_after(observation[HIDDEN_STATE], observation["observation"])
        felt = seen_with(memory, observation["observation"])
        chosen = [self.decide(felt[i], self.told(observation, i)) for i in range(len(felt))]
        return ActionInfo(action=np.array(chosen), extras={HIDDEN_STATE: memory})

    def store(self, transition):
        pass

    def train(self, clock):
        pass


@dataclass
class RecurrentRows(Pending):
    """The same, with what a recurrent agent keeps of its rows."""

    own: AgentRows = None

    def state_dict(self):
        return {"decisions": super().state_dict(), "own": self.own.state_dict()}

    def load_state_dict(self, state):
        super().load_state_dict(state["decisions"])
        self.own.load_state_dict(state["own"])


@dataclass
class Recurrent(Scripted):
    """Decides as a recurrent agent; at random phases too, as the rule does."""

    def __post_init__(self):
        self.agent = ElementwiseCell(self.level, self.below, self.space)

    def new_rows(self, num_envs, seed):
        return RecurrentRows(num_envs, own=self.agent.new_rows(num_envs, seed))

    def chosen(self, row_state, request, clock):
        return self.agent.act(row_state.own, request, Clock())

    def observe(self, row_state, outcome, clock):
        super().observe(row_state, outcome, clock)
        self.agent.observe(row_state.own, outcome, Clock())

    def cut_off(self, row_state, rows, clock):
        super().cut_off(row_state, rows, clock)
        self.agent.cut_off(row_state.own, rows, Clock())


def agent_of(levels, index, below, count):
    """The agent of a level."""
    level, space = levels[index], below.spaces.action
    lower = levels[index + 1].goal_space if index + 1 < len(levels) else None
    if level.remembers:
        return Recurrent(level, lower, space, count)
    return (Ending if level.ends_options else Scripted)(level, lower, space, count)


def build(seeds, levels, clock, discount=1.0, agent_of=agent_of, failing=0.0):
    """The stack, reset, and its agents, top first."""
    below, agents = Walks(seeds, failing), []
    for index in reversed(range(len(levels))):
        agents.append(agent_of(levels, index, below, len(seeds)))
        below = LevelManager(
            levels[index],
            agent=agents[-1],
            environment=below,
            clock=clock,
            seed=TESTING_SEED,
            above=levels[:index],
            sums=Sums(discount=discount),
        )
    below.reset()
    return below, agents[::-1]


def managers(top):
    """The levels of a stack, top first."""
    return [top, *(managers(top.environment) if isinstance(top.environment, LevelManager) else [])]
