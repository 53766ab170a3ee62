"""Members that act in turn: each gets exactly its own decisions, and what came until the next."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from gymnasium import spaces
from plain_group import CHOICES, PlainGroup
from small_agents import ddpg, ppo

import coach_rl as rl
from coach_rl.core.agents import AgentContext
from coach_rl.core.clock import Clock, Phase
from coach_rl.core.infos import agent_info
from coach_rl.core.parts import description_of, trajectories_of
from coach_rl.core.records import HIDDEN_STATE, Outcome
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.members.member_agents import switch
from coach_rl.extensions.members.requests import GraphRequest
from coach_rl.extensions.scripts.scripted_agent import ActingOnly, ScriptedRows
from tests.builders import created, flat
from tests.random_graphs import GOALS, to_the_left

NAMES = ("a", "b", "c")
CLOCK = Clock(phase=Phase.TRAIN)
CLOCKS = {True: CLOCK, False: Clock(phase=Phase.TEST)}
OBSERVED = spaces.Box(-9, 9, (1,), np.float64)


class Recorder(ActingOnly):
    """Acts by a function of what it sees and of how often it has acted, and keeps transitions."""

    def __init__(self, name, space):
        super().__init__(name)
        self.space, self.open, self.count, self.kept = space, {}, {}, {}

    def new_rows(self, num_envs, seed):
        return ScriptedRows()

    def act(self, row_state, request, clock):
        actions = []
        for place, row in enumerate(request.rows.tolist()):
            seen = float(request.observation["x"][place, 0])
            self.count[row] = self.count.get(row, 0) + 1
            assert row not in self.open, "the decision before has no outcome"
            flags = bool(request.starts[place]), bool(request.episode_start[place])
            actions.append(script(seen, self.count[row], int(self.space.n)))
            self.open[row] = (seen, actions[-1], *flags)
        return np.array(actions)

    def observe(self, row_state, outcome, clock):
        for place, row in enumerate(outcome.rows.tolist()):
            led_to = (
                float(outcome.observation["x"][place, 0]),
                float(outcome.reward[place]),
                bool(outcome.terminated[place]),
                bool(outcome.truncated[place]),
                int(outcome.duration[place]),
                int(outcome.end[place]),
                int(outcome.below[place]),
                bool(outcome.tested[place]),
                clock.learns,
            )
            self.kept.setdefault(row, []).append((*self.open.pop(row), *led_to))

    def cut_off(self, row_state, rows, clock):
        for row in rows.tolist():
            self.open.pop(row, None)


def script(seen, count, choices):
    return int(abs(seen) * 1e6 + 7 * count) % choices


@dataclass(frozen=True, kw_only=True)
class RecorderParameters:
    name: str

    def build(self, context):
        return Recorder(self.name, context.spaces.action)


class Plain(PlainGroup):
    """A group that acts by the script."""

    def decided(self, name, request, choices, starts, first):
        return script(request["x"], self.counts[name], choices)


def random_group(rng):
    """Parameters of a group of one to three members."""
    count = int(rng.integers(1, 4))
    names = NAMES[:count]
    shares = "one" if rng.random() < 0.3 else None
    kind = rng.integers(5)
    whole = kind > 0 and rng.random() < 0.5
    members = tuple(
        rl.GroupMember(
            agent=RecorderParameters(name=name),
            actions=None if whole else name,
            observations=("x",),
            reward=agent_info(name, "reward") if rng.random() < 0.5 else None,
            terminated=agent_info(name, "terminated") if own_ends else None,
            truncated=agent_info(name, "truncated") if own_ends else None,
            shares=shares,
        )
        for name, own_ends in zip(names, rng.random(count) < 0.5, strict=True)
    )
    extra = tuple(rng.choice(names, rng.integers(0, 3)).tolist())
    order = tuple(rng.permutation((*names, *extra)).tolist())
    chooser = rl.SelectedTurns(
        agent=RecorderParameters(name="chooser"),
        observations=("x",),
        every=int(rng.choice((1, 2, 3, 30))),  # the last outlasts nearly all sub-episodes
    )
    arbiter = (None, rl.Turns(), rl.Turns(order=order), rl.EnvironmentTurns(), chooser)[kind]
    discount = 1.0 if rng.random() < 0.5 or arbiter is None else 0.5  # powers without rounding
    return rl.AgentGroupParameters(members=members, arbiter=arbiter, discount=discount)


def built(params, num_envs):
    names = [member.agent.name for member in params.members]
    turn = {f"turn/{name}": spaces.Discrete(2) for name in names}
    whole = params.members[0].actions is None
    choice = spaces.Discrete(CHOICES)
    context = AgentContext(
        spaces=EnvironmentSpaces(
            observation=spaces.Dict({"x": OBSERVED, **turn}),
            action=choice if whole else spaces.Dict(dict.fromkeys(names, choice)),
        ),
        num_envs=num_envs,
    )
    return params.build(context)


def random_events(rng, names, ticks):
    """What one row meets, in turn: requests and the outcomes of the decisions, or failures."""
    events, starts, episode_start, learns = [], True, True, True
    for _ in range(ticks):
        turn, learns = str(rng.choice(names)), learns ^ (rng.random() < 0.1)
        request = {"x": rng.normal(), "turn": turn, "starts": starts, "learns": learns}
        request["real_start"] = episode_start
        request["episode_start"] = episode_start or (starts and bool(rng.random() < 0.3))
        events.append(("act", request))
        if rng.random() < 0.03:
            events.append(("cut", None))
            starts = episode_start = True
            continue
        terminated, truncated = bool(rng.random() < 0.08), bool(rng.random() < 0.08)
        starts = terminated or truncated
        episode_start = starts and bool(rng.random() < 0.6)  # otherwise the sub-episode's alone
        learns ^= rng.random() < 0.1
        outcome = {
            "x": rng.normal(),
            "learns": learns,
            "reward": rng.normal(),
            "terminated": terminated,
            "truncated": truncated and not terminated,
            "duration": int(rng.integers(1, 4)),
            "below": int(rng.integers(0, 8)),
            "tested": bool(rng.random() < 0.3),
            "own": {
                name: {
                    "reward": rng.normal(),
                    "terminated": bool(rng.random() < 0.1),
                    "truncated": bool(rng.random() < 0.1),
                }
                for name in names
            },
        }
        outcome["end"] = 8 * outcome["terminated"] + 16 * outcome["truncated"]
        events.append(("outcome", outcome))
        if not starts and rng.random() < 0.05:  # the level above takes control back
            events.append(("switch", {"x": rng.normal(), "learns": learns}))
            starts = True
    return events


def column(events, name, dtype):
    return np.array([each[name] for each in events], dtype)


def request_of(rows, events, names):
    turns = {
        f"turn/{name}": np.array([each["turn"] == name for each in events], np.int64)
        for name in names
    }
    return GraphRequest(
        rows=np.array(rows),
        observation={"x": column(events, "x", np.float64)[:, None], **turns},
        starts=column(events, "starts", np.bool_),
        episode_start=column(events, "episode_start", np.bool_),
        greedy=np.zeros(len(rows), np.bool_),
        real=column(events, "real_start", np.bool_),
    )


def outcome_of(rows, events, names):
    info = {
        agent_info(name, what): np.array([each["own"][name][what] for each in events])
        for name in names
        for what in ("reward", "terminated", "truncated")
    }
    return Outcome(
        rows=np.array(rows),
        observation={"x": column(events, "x", np.float64)[:, None]},
        reward=column(events, "reward", np.float64),
        terminated=column(events, "terminated", np.bool_),
        truncated=column(events, "truncated", np.bool_),
        duration=column(events, "duration", np.int64),
        end=column(events, "end", np.uint8),
        below=column(events, "below", np.uint8),
        tested=column(events, "tested", np.bool_),
        info=info,
    )


def call_of(kind, event):
    return kind, event is None or bool(event["learns"])


def play(params, streams, rng):
    """Run a group through the events of its rows, out of phase; the group, and actions by row."""
    names = [member.agent.name for member in params.members]
    group = built(params, len(streams))
    row_state = group.new_rows(len(streams), seed=0)
    left = [list(events) for events in streams]
    sent = [[] for _ in streams]
    while any(left):
        kinds = {row: call_of(*events[0]) for row, events in enumerate(left) if events}
        kind, learns = call = list(kinds.values())[rng.integers(len(kinds))]
        able, clock = [row for row, its in kinds.items() if its == call], CLOCKS[learns]
        rows = [row for row in able if rng.random() < 0.7] or able[:1]
        events = [left[row].pop(0)[1] for row in rows]
        if kind == "act":
            action = group.act(row_state, request_of(rows, events, names), clock)
            for place, row in enumerate(rows):
                parts = action.items() if isinstance(action, dict) else [("", action)]
                sent[row].append({key: int(values[place]) for key, values in parts})
        elif kind == "outcome":
            group.observe(row_state, outcome_of(rows, events, names), clock)
        elif kind == "switch":
            seen = {"x": column(events, "x", np.float64)[:, None]}
            switch(group, row_state, np.array(rows), seen, clock)
        else:
            group.cut_off(row_state, np.array(rows), clock)
    return group, sent


def transitions_of(group, row):
    """The transitions of one row, by member, with the selector's."""
    found = {}
    for each in group.bound:
        agent_row = row * each.slots + each.slot
        found[each.name] = group.members[each.agent_name].kept.get(agent_row, [])
    if "chooser" in group.members:
        found["chooser"] = group.members["chooser"].kept.get(row, [])
    return {name: kept for name, kept in found.items() if kept}


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize(
    "seed", [pytest.param(n, marks=() if n < 60 else pytest.mark.slow) for n in range(160)]
)
def test_group_equals_a_plain_recursion_row_by_row(seed):
    """Any arbiter, rewards and ends; rows out of phase, so each is as if it were alone."""
    rng = np.random.default_rng(seed)
    params = random_group(rng)
    names = [member.agent.name for member in params.members]
    streams = [random_events(rng, names, 40) for _ in range(rng.integers(1, 4))]
    group, sent = play(params, streams, rng)
    idle = CHOICES // 2
    for row, events in enumerate(streams):
        plain, actions = Plain(params), []
        for kind, event in events:
            if kind == "act":
                made = plain.act(event)
                if params.members[0].actions is None:
                    actions.append({"": next(iter(made.values()), idle)})
                else:
                    actions.append({name: made.get(name, idle) for name in names})
            elif kind == "outcome":
                plain.observe(event)
            elif kind == "switch":
                plain.switch(event)
            else:
                plain.cut_off()
        assert transitions_of(group, row) == plain.kept
        assert sent[row] == actions
        alone, _ = play(params, [events], rng)
        assert transitions_of(alone, 0) == plain.kept


def test_description_shows_the_arbiter_the_members_and_the_selector():
    members = tuple(rl.GroupMember(agent=RecorderParameters(name=name)) for name in NAMES[:2])
    chooser = rl.ScriptedAgentParameters(name="chooser", policy=to_the_left)
    by_arbiter = {
        "acts: a, b, b, in this order": rl.Turns(order=("a", "b", "b")),
        "acts: the member whose turn is shown by turn/a, turn/b": rl.EnvironmentTurns(),
        "acts: the member that chooser chooses, every 4 decisions": rl.SelectedTurns(
            agent=chooser, every=4
        ),
    }
    for line, arbiter in by_arbiter.items():
        group = built(rl.AgentGroupParameters(members=members, arbiter=arbiter), num_envs=1)
        lines = description_of(group).splitlines()
        assert lines[0] == line
        assert {"member a", "member b"} < set(lines)
        assert ("selector chooser" in lines) == isinstance(arbiter, rl.SelectedTurns)


# Whole runs.


def heard(maker, arbiter, steps):
    """The transitions of speaker and listener in an environment of that kind."""
    agents = (ppo(name, 1_000, normalised=False) for name in ("speaker_0", "listener_0"))
    members = tuple(rl.GroupMember.of(agent) for agent in agents)
    params = flat(
        rl.AgentGroupParameters(members=members, arbiter=arbiter),
        rl.PettingZooParameters(
            level=f"mpe2.simple_speaker_listener_v4:{maker}", kwargs={"max_cycles": 5}
        ),
        num_envs=2,
        training=2 * steps,
    )
    with created(params, seed=3) as manager:
        manager.run()
        members = manager.graph.agents["main"].members
        return {name: trajectories_of(agent) for name, agent in members.items()}


@pytest.mark.filterwarnings("ignore:.*would learn nothing")
def test_speaker_and_listener_in_turn_equal_those_at_once():
    """In AEC's form both act before the world moves, so each has the transitions of the parallel
    form, but for the simulator steps that a decision lasts: two, and one where the episode ends.
    """
    pytest.importorskip("mpe2")
    at_once, in_turn = heard("parallel_env", None, 20), heard("env", rl.EnvironmentTurns(), 40)
    for name, expected in at_once.items():
        assert expected["/mask"].sum() == 40
        assert in_turn[name].keys() == expected.keys()
        for path, values in expected.items():
            if path != "/durations":
                np.testing.assert_array_equal(in_turn[name][path], values, err_msg=path)
        assert set(in_turn[name]["/durations"].ravel()) <= {1, 2}


def recurrent(name, reset):
    plain = ppo(name, 20, normalised=False)
    torso = rl.TorsoParameters(middleware=(8,), recurrence=rl.GRU(size=4, reset=reset))
    algorithm = replace(plain.algorithm, minibatch=10, sequence=4)
    return replace(plain, network=rl.ActorCriticParameters(torso=torso), algorithm=algorithm)


def noting(agent, noted):
    """Notes what an agent is shown, what it acts on, its hidden state, and where it starts."""
    act, choose = agent.act, agent.choose

    def acts(row_state, request, clock):
        noted.append([request.observation["observation"], request.starts])
        return act(row_state, request, clock)

    def chooses(row_state, request, clock):
        noted[-1] += [request.observation["observation"], request.observation[HIDDEN_STATE]]
        return choose(row_state, request, clock)

    agent.act, agent.choose = acts, chooses


@pytest.mark.drawn(one_of=3)
@pytest.mark.parametrize("reset", ["sub_episode", "episode"])
@pytest.mark.parametrize(
    "freezing",
    [
        {"frozen_from": rl.EnvironmentSteps(31), "frozen_until": rl.EnvironmentSteps(51)},
        {"frozen_from": rl.SuccessRate(rate=0.5, over=20, level="low")},
        {"turn": rl.EnvironmentSteps(20)},
    ],
    ids=["from", "success", "turn"],
)
@pytest.mark.parametrize("arbiter", ["turns", "selected"])
def test_group_with_an_arbiter_that_freezes_acts_on_the_newest_observation_and_remembers(
    arbiter, freezing, reset
):
    arbiters = {
        "turns": rl.Turns(order=("a", "a", "a", "b")),
        "selected": rl.SelectedTurns(agent=recurrent("chooser", reset), every=4),
    }
    members = tuple(rl.GroupMember(agent=recurrent(name, reset)) for name in ("a", "b"))
    group = rl.AgentGroupParameters(members=members, arbiter=arbiters[arbiter])
    near = replace(GOALS, threshold=(2.0, 2.0))
    turns = (rl.LevelTimes(turn=freezing["turn"]),) if "turn" in freezing else ()
    levels = (
        rl.LevelParameters(name="main", agent=group, changes=(rl.LevelTimes(**freezing),)),
        rl.LevelParameters(
            name="low", agent=ddpg("low", 10), goal_space=near, horizon=2, changes=turns
        ),
    )
    schedule = rl.ScheduleParameters(training=rl.EnvironmentSteps(90), evaluation_interval=None)
    environment = rl.PointMassParameters(max_episode_steps=1_000)
    manager = rl.GraphManager(
        rl.GraphParameters(levels=levels, environment=environment, schedule=schedule)
    )
    manager.create_graph(rl.Runtime(seed=0, device="cpu"))
    noted = {name: [] for name in manager.graph.agents["main"].members}
    for name, agent in manager.graph.agents["main"].members.items():
        noting(agent, noted[name])
    manager.run()
    for decisions in noted.values():
        assert len(decisions) > 5
        for number, (shown, starts, seen, hidden) in enumerate(decisions):
            np.testing.assert_array_equal(shown, seen)
            assert bool(starts[0]) == (number == 0)
            assert hidden.any() == (number > 0)
