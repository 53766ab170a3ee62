"""Graphs of levels with networks once more: one row at a time, in double precision.

Agents act greedily. Their decisions are compared with what their weights make of the observations
that the recursion gives them, and then followed, so that rounding does not add up.
"""

import math
from collections import defaultdict
from dataclasses import dataclass, field, replace

import numpy as np
import pytest
from gymnasium import spaces
from network_agents import SharedWalk, SharedWalks, box_of, keys_of, random_group
from plain_graph import Play, graph_of, random_graph
from plain_group import PlainGroup

import coach_rl as rl
from coach_rl.agents.action_forms import ACTION_UNITS
from coach_rl.agents.ppo_agent import PPOAgent
from coach_rl.core.agents import AgentContext
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.goals import TIME_KEY
from coach_rl.core.infos import Sums
from coach_rl.core.row_noise import RowNoise
from coach_rl.core.seeding import integer_seed

FLAGS = ("terminated", "truncated", "duration", "end", "below", "tested")


class Watched:
    """What an agent decides, stores and learns from; it is made to act greedily."""

    def __init__(self, agent, now):
        self.agent, self.now = agent, now
        self.made, self.stored, self.versions = defaultdict(list), defaultdict(list), []
        self.learned = []
        act, choose, store, truncate = agent.act, agent.choose, agent.store, agent._truncate
        agent.act, agent.store = self.act, self.store
        agent.choose = lambda rows, request, clock: choose(
            rows, replace(request, greedy=np.ones_like(request.greedy)), clock
        )
        agent._truncate = self.truncate
        self._calls = act, store, truncate
        if isinstance(agent, PPOAgent):
            self._batch, agent.rollout_batch = agent.rollout_batch, self.rollout_batch
        else:
            self._sample, agent.memory.sample = agent.memory.sample, self.sample

    def act(self, row_state, request, clock):
        action = self._calls[0](row_state, request, clock)
        for place, row in enumerate(request.rows.tolist()):
            taken = _at(action, place)
            flags = bool(request.starts[place]), bool(request.episode_start[place])
            self.made[row].append(
                (self.now[0], clock.phase, *flags, bool(request.greedy[place]), taken)
            )
        return action

    def store(self, transition):
        self._calls[1](transition)
        for place, row in enumerate(transition.rows.tolist()):
            self.stored[row].append(
                {
                    "observation": _at(transition.observation, place),
                    "action": _at(transition.action, place),
                    "next": _at(transition.next_observation, place),
                    "reward": float(transition.reward[place]),
                    "flags": tuple(int(getattr(transition, name)[place]) for name in FLAGS),
                    "follows": bool(transition.follows[place]),
                    "log_prob": float(
                        transition.extras.get("log_prob", np.zeros(place + 1))[place]
                    ),
                }
            )

    def truncate(self, rows):
        self._calls[2](rows)
        for row in rows.tolist():
            if self.stored[row] and not self.stored[row][-1]["flags"][0]:
                self.stored[row][-1]["flags"] = (0, 1, *self.stored[row][-1]["flags"][2:])

    def rollout_batch(self, rollout, grid):
        batch, count = self._batch(rollout, grid), len(self.agent.memory)
        rows = self.agent.memory.columns["/rows"][:count].tolist()
        self.learned.append((self.now[0], rows, batch.advantage[:count].tolist()))
        return batch

    def sample(self, size):
        batch, store = self._sample(size), self.agent.memory.store
        positions = batch.position.numpy()
        rows, steps = store.rows_of(positions), store.steps_of(positions)
        found = zip(
            rows.tolist(),
            steps.tolist(),
            store.counts[rows].tolist(),
            batch.reward.tolist(),
            batch.discount.tolist(),
            (_at(batch.next_observation, place) for place in range(size)),
            strict=True,
        )
        self.learned += found
        return batch

    def note_version(self):
        """Keep the weights of this tick."""
        if self.versions and self.versions[-1][0] == self.agent.training_steps:
            self.versions.append(self.versions[-1])
            return
        part = self.agent.parts()
        network = next(part[name] for name in ("actor_critic", "q", "actor") if name in part)
        named = network.named(network.online).items()
        weights = {name: values.detach().double().numpy().copy() for name, values in named}
        self.versions.append((self.agent.training_steps, weights))

    def numbers(self, step, observation, *prefixes):
        """The outputs of a network at a step for one observation."""
        weights = self.versions[step][1]
        keys = [key for key in self.agent.observation_space.spaces if key in observation]
        values = np.concatenate([np.asarray(observation[key], np.float64).ravel() for key in keys])
        names = [name.removesuffix(".weight") for name in weights if name.endswith("weight")]
        names = [name for name in names if name.startswith(prefixes)]
        for number, name in enumerate(names):
            values = np.tanh(values) if number else values
            values = weights[f"{name}.weight"] @ values + weights[f"{name}.bias"]
        return values

    def decision(self, step, observation):
        """The greedy decision's numbers of the network, and its logarithmic probability."""
        agent = self.agent
        if not isinstance(agent, PPOAgent):
            return self.numbers(step, observation, "torso", "head", "actions"), 0.0
        numbers = self.numbers(step, observation, "actor_torso", "policy_head")
        spread = self.versions[step][1].get("log_std", np.zeros(0))
        logits = numbers[: len(numbers) - len(spread)]
        log_prob = -spread.sum() - 0.5 * len(spread) * math.log(2 * math.pi)
        if len(logits):
            choices = getattr(agent.action_space, "choices", agent.action_space)
            sizes = getattr(choices, "nvec", [len(logits)])
            for part in np.split(logits, np.cumsum(sizes)[:-1]):
                log_prob += part.max() - np.log(np.exp(part).sum())
        return numbers, log_prob

    def value(self, step, observation):
        return float(self.numbers(step, observation, "critic_torso", "value_head")[0])


def _at(values, place):
    return {k: v[place] for k, v in values.items()} if isinstance(values, dict) else values[place]


def assert_greedy(watched, space, numbers, action, where):
    """The action is what the numbers of a network make of it."""
    if isinstance(space, spaces.Dict):
        parts = sorted(space.spaces, key=lambda key: isinstance(space[key], spaces.Box))
        for key in parts:
            size = (
                int(space[key].n)
                if isinstance(space[key], spaces.Discrete)
                else space[key].shape[0]
            )
            assert_greedy(watched, space[key], numbers[:size], action[key], where)
            numbers = numbers[size:]
        return
    if isinstance(space, spaces.Discrete):
        assert numbers[int(action)] >= numbers.max() - 1e-4, where
        return
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    numbers = numbers[: len(low)]  # SAC has deviations behind them
    if not isinstance(watched.agent, PPOAgent):
        expected = (low + high) / 2 + (high - low) / 2 * np.tanh(numbers)
    elif ACTION_UNITS in watched.agent.stages.conditions:
        expected = (low + high) / 2 + (high - low) / 2 * np.clip(numbers, -1, 1)
    else:
        expected = np.clip(numbers, low, high)
    np.testing.assert_allclose(action, expected, atol=1e-4, err_msg=str(where))


def idle(space):
    """The placeholder of members that don't act."""
    if isinstance(space, spaces.Dict):
        return {key: idle(part) for key, part in space.spaces.items()}
    if isinstance(space, spaces.Discrete):
        return int(space.n) // 2
    return (space.low + space.high) / 2


# The recursion.


@dataclass
class Members(PlainGroup):
    """One row of a group with networks."""

    play: "NetworkPlay" = None
    watched: dict = field(default_factory=dict)
    """The agents by name."""
    space: spaces.Space = None
    level: str = ""
    frames: dict = field(default_factory=dict)
    decisions: dict = field(default_factory=dict)

    def part(self, name):
        """The member, the agent that acts for it, and its row of that agent."""
        members = [each for each in self.params.members if each.agent.name == name]
        if not members:
            return None, self.watched[name], self.play.row
        same = [each for each in self.params.members if each.agent_name == members[0].agent_name]
        row = self.play.row * len(same) + same.index(members[0])
        return members[0], self.watched[members[0].agent_name], row

    def space_of(self, member):
        if member is None:
            return spaces.Discrete(len(self.names))
        if member.actions is None:
            return self.space
        return box_of(self.space, [int(each) for each in member.actions])

    def stacked(self, name, shown):
        """What the agent's networks see."""
        has_frames = self.part(name)[1].agent.params_of.input_filter is not None
        return {**shown, "observation": np.array(self.frames[name])} if has_frames else shown

    def decided(self, name, request, choices, starts, first):
        member, watched, row = self.part(name)
        if first:
            self.frames[name] = [request["x"]["observation"]] * 2
        seen, step = self.stacked(name, request["x"]), self.play.steps
        assert (self.frames[name][-1] == request["x"]["observation"]).all()
        where = (self.level, name, row, step)
        assert watched.made[row], where
        *flags, action = watched.made[row].pop(0)
        space = self.space_of(member)
        if isinstance(space, spaces.Dict) and not isinstance(action, dict):  # discrete parts alone
            action = dict(zip(space.spaces, action.tolist(), strict=True))
        assert flags == [step, request["phase"], starts, first, request["quiet"]], where
        numbers, log_prob = watched.decision(step, seen)
        if request["phase"] is not Phase.HEATUP:
            assert_greedy(watched, space, numbers, action, where)
        self.decisions[name] = {
            "observation": seen,
            "log_prob": log_prob,
            "phase": request["phase"],
        }
        return action

    def close(self, name, event, *ends):
        super().close(name, event, *ends)
        values, own = self.kept[name].pop(), self.decisions.pop(name)
        _, action, starts, _, after, reward, terminated, truncated, duration, *rest, learns = values
        self.frames[name] = [self.frames[name][-1], after["observation"]]
        self.kept[name].append(
            {
                **own,
                "action": action,
                "next": self.stacked(name, after),
                "reward": reward,
                "flags": tuple(map(int, (terminated, truncated, duration, *rest))),
                "starts": starts,
                "learns": learns,
            }
        )

    def switch(self, event):
        if self.params.arbiter is not None:
            super().switch(event)
            return
        for name in self.names:  # the last decision is truncated after it was stored
            stored = [
                each for each in self.kept.get(name, []) if is_stored(self.part(name)[1], each)
            ]
            if event["learns"] and stored and not stored[-1]["flags"][0]:
                stored[-1]["flags"] = (0, 1, *stored[-1]["flags"][2:])


def is_stored(watched, made):
    """Whether an agent stores a decision."""
    heatup = made["phase"] is Phase.HEATUP
    return made["learns"] and not (heatup and isinstance(watched.agent, PPOAgent))


@dataclass
class NetworkPlay(Play):
    """A row whose levels are groups of agents with networks."""

    groups: dict = field(default_factory=dict)
    """[L] the groups of this row."""

    def shown(self, index, seen, told):
        keys = keys_of(self.levels[index])
        parts = [seen] if told is None else [seen, told]
        if TIME_KEY in keys:
            parts = [seen, told[:-1], told[-1:]]
        return dict(zip(keys, parts, strict=True))

    def decided(self, index, known, seen, told, *, is_real):
        group, turn = self.groups[index], self.walk.turns()
        count = len(group.names)
        request = {
            "x": self.shown(index, seen, told),
            "turn": next(name for name in group.names if turn[f"turn{count}/{name}"]),
            "starts": known["starts"],
            "episode_start": known["fresh"],
            "real_start": is_real,
            "learns": known["phase"] is not Phase.TEST,
            "phase": known["phase"],
            "quiet": known["quiet"],
        }
        made, space = group.act(request), group.space
        if group.params.members[0].actions is None:
            return next(iter(made.values()), idle(space))
        whole = idle(space)
        for member in group.params.members:
            if member.agent.name in made:
                whole[[int(each) for each in member.actions]] = made[member.agent.name]
        return whole.astype(space.dtype)

    def came(self, index, transition, own):
        told = transition["told after"]
        seen = self.shown(
            index, np.array(transition["after"]), None if told is None else np.array(told)
        )
        self.groups[index].observe(
            {**transition, "x": seen, "own": own, "learns": transition["heard"] is not Phase.TEST}
        )

    def switched(self, index, phase, order):
        seen = self.walk.position.copy()
        told = None if order is None else order.shown(seen, self.steps)
        self.groups[index].switch(
            {"x": self.shown(index, seen, told), "learns": phase is not Phase.TEST}
        )


class Run:
    """A random graph with networks, and what its agents have done."""

    def __init__(self, seed, *, ticks=100):
        rng = np.random.default_rng(seed)
        self.seed, self.levels = seed, random_graph(rng)
        self.seeds = rng.integers(0, 1000, int(rng.integers(1, 4))).tolist()
        self.discount = float(rng.choice([1.0, 0.9]))
        self.phases = [Phase.HEATUP] * 6 + [Phase.TRAIN] * ticks
        self.clock, self.now, self.groups = Clock(), [0], {}
        self.watched = defaultdict(dict)
        self.agents = {}
        self._draws, self.spaces = rng, {}
        self.graph = graph_of(self.levels)
        self.stack = self.graph.build_stack(
            self.levels,
            SharedWalks(self.seeds),
            agent=self._agent,
            clock=self.clock,
            seed=5,
            purpose="training",
            signals=None,
            sums=Sums(discount=self.discount),
        )
        self.stack.reset(0)

    def _agent(self, index, own):
        level = self.levels[index]
        params = self.groups[index] = random_group(self._draws, level, own.action)
        context = AgentContext(
            spaces=own,
            num_envs=len(self.seeds),
            planned_steps=10_000,
            runtime=rl.Runtime(device="cpu", seed=self.seed),
        )
        is_one = params.arbiter is None and len(params.members) == 1
        built = (params.members[0].agent if is_one else params).build(context)
        self.agents[index] = built
        parameters = {each.agent_name: each.agent for each in params.members}
        if isinstance(params.arbiter, rl.SelectedTurns):
            parameters["chooser"] = params.arbiter.agent
        for name, agent in ({"a": built} if is_one else built.members).items():
            agent.params_of = parameters[name]
            self.watched[index][name] = Watched(agent, self.now)
        self.spaces[index] = own.action
        return built

    def advance(self, ticks):
        for phase in self.phases[self.now[0] :][:ticks]:
            self.clock.phase = phase
            for each in self.all_watched():
                each.note_version()
            self.stack.tick()
            for index in reversed(range(len(self.levels))):
                if self.clock.phase is Phase.TRAIN and not self.levels[index].frozen:
                    self.agents[index].train(self.clock)
            self.now[0] += 1

    def state(self):
        """The stack with its open decisions, and the agents."""
        agents = {str(index): agent.state_dict() for index, agent in self.agents.items()}
        return {"stack": self.stack.state_dict(), "agents": agents, "ticks": self.now[0]}

    def load(self, state):
        self.stack.load_state_dict(state["stack"])
        for index, agent in self.agents.items():
            agent.load_state_dict(state["agents"][str(index)])
        self.now[0] = state["ticks"]

    def all_watched(self):
        return [each for agents in self.watched.values() for each in agents.values()]

    def plays(self):
        """The recursions of all rows, which compare decisions on their way."""
        links, noise, phases = self.graph.links(self.levels), {}, self.phases[: self.now[0]]
        for index, level in enumerate(self.levels):
            seed = integer_seed(5, "training", level.name)
            noise[index] = RowNoise(
                num_rows=len(self.seeds), size=1, kind="uniform", seed=seed, name="testing"
            )
        found = []
        for row, seed in enumerate(self.seeds):
            play = NetworkPlay(
                self.levels, links, phases, self.discount, row, noise, SharedWalk(seed)
            )
            for index in range(len(self.levels)):
                play.groups[index] = Members(
                    self.groups[index],
                    play=play,
                    watched=self.watched[index],
                    space=self.spaces[index],
                    level=self.levels[index].name,
                )
            found.append(play.run())
        return found

    def check(self):
        """Compare all that agents have decided, stored and learned from with the recursions."""
        plays = self.plays()
        for index, agents in self.watched.items():
            for name, watched in agents.items():
                expected = {}
                for play in plays:
                    group = play.groups[index]
                    for member, kept in group.kept.items():
                        _, its, row = group.part(member)
                        if its is watched:
                            expected[row] = followed(watched, kept)
                where = (self.seed, self.levels[index].name, name)
                assert not any(watched.made.values()), where
                for row in {*expected, *watched.stored}:
                    assert_stored(watched.stored[row], expected.get(row, []), (*where, row))
                if isinstance(watched.agent, PPOAgent):
                    assert_advantages(watched, expected, where)
                else:
                    assert_returns(watched, expected, where)


def followed(watched, kept):
    """The decisions that are stored, with whether each follows on the one before it."""
    before, found = None, []
    for made in kept:
        if not is_stored(watched, made):
            before = None
            continue
        made["follows"] = (
            not made["starts"] and before is not None and same(before["next"], made["observation"])
        )
        found.append(made)
        before = made
    return found


def same(one, other):
    return all((one[key] == other[key]).all() for key in one)


def assert_stored(stored, expected, where):
    assert len(stored) == len(expected), where
    for number, (found, made) in enumerate(zip(stored, expected, strict=True)):
        here = (*where, number)
        for name in ("observation", "next"):
            for key, values in made[name].items():
                np.testing.assert_allclose(found[name][key], values, atol=1e-6, err_msg=str(here))
        assert found["reward"] == pytest.approx(made["reward"], abs=1e-5), here
        assert found["flags"] == made["flags"], here
        assert found["follows"] == made["follows"], here
        assert found["log_prob"] == pytest.approx(made["log_prob"], abs=1e-3), here


def assert_advantages(watched, expected, where):
    """Generalised advantages of each rollout, one row after the other (Schulman et al. 2016)."""
    settings, begun = watched.agent.params.algorithm, defaultdict(int)
    for step, rows, advantages in watched.learned:
        for row in set(rows):
            found = [each for each, at in zip(advantages, rows, strict=True) if at == row]
            made = expected[row][begun[row] : begun[row] + len(found)]
            begun[row] += len(found)
            following = 0.0
            for number in reversed(range(len(found))):
                here = made[number]
                terminated, truncated, duration, *_ = here["flags"]
                gamma = settings.discount ** (duration if settings.discount_by_duration else 1)
                if (
                    terminated
                    or truncated
                    or not (made[number + 1 :] and made[number + 1]["follows"])
                ):
                    following = 0.0
                after = 0.0 if terminated else watched.value(step, here["next"])
                delta = here["reward"] + gamma * after - watched.value(step, here["observation"])
                following = delta + gamma * settings.gae_lambda * following
                assert found[number] == pytest.approx(following, rel=1e-3, abs=1e-3), (*where, row)


def assert_returns(watched, expected, where):
    """Returns of n steps of each transition that was drawn."""
    memory, gamma = watched.agent.params_of.memory, watched.agent.discount
    for row, first, count, reward, discount, after in watched.learned:
        total, elapsed = 0.0, 0
        for made in expected[row][first : min(first + memory.n_step, count)]:
            if made is not expected[row][first] and not made["follows"]:
                break
            last, (terminated, truncated, duration, *_) = made, made["flags"]
            total += gamma**elapsed * made["reward"]
            elapsed += duration if memory.discount_by_duration else 1
            if terminated or truncated:
                break
        assert reward == pytest.approx(total, rel=1e-4, abs=1e-4), (*where, row, first)
        assert discount == pytest.approx(0.0 if last["flags"][0] else gamma**elapsed, abs=1e-5)
        for key, values in last["next"].items():
            np.testing.assert_allclose(after[key].numpy(), values, atol=1e-4, err_msg=str(where))
