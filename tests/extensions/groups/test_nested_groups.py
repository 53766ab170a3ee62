"""Groups in groups: real episodes, ends and rewards reach the inner members."""

import re

import numpy as np
import pytest
import test_arbiters as turns
from gymnasium import spaces
from plain_group import CHOICES
from small_agents import ppo

import coach_rl as rl
from coach_rl.core.agents import AgentContext
from coach_rl.core.infos import agent_info
from coach_rl.core.spaces import EnvironmentSpaces
from coach_rl.extensions.groups.agent_group import AgentGroupParameters, GroupMember

NAMES = ("a", "b")
KEYS = {what: {name: agent_info(name, what) for name in NAMES} for what in ("reward", "terminated")}


def inner(name, *, arbiter=None, whole=False, own=()):
    """A group as a member, the members of which have these rewards and ends of their own."""
    members = tuple(
        GroupMember(
            agent=turns.RecorderParameters(name=each),
            actions=None if whole else str(number),
            observations=("x",),
            **{what: KEYS[what][each] for what in own},
        )
        for number, each in enumerate(NAMES)
    )
    return GroupMember(agent=AgentGroupParameters(name=name, members=members, arbiter=arbiter))


class Outer:
    """One row of a group of two groups that act in turn."""

    def __init__(self, *, action, discount=1.0, **own):
        params = AgentGroupParameters(
            members=(inner("g", **own), inner("h", **own)), arbiter=rl.Turns(), discount=discount
        )
        observed = spaces.Dict({"x": turns.OBSERVED})
        given = EnvironmentSpaces(observation=observed, action=action)
        self.group = params.build(AgentContext(spaces=given, num_envs=1))
        self.rows = self.group.new_rows(1, seed=0)

    def act(self, *, starts=False, real=False):
        """Names of the inner members that act, with those of their groups."""
        before = self.counts()
        event = {"x": 0.5, "turn": "", "starts": starts, "episode_start": real, "real_start": real}
        self.group.act(self.rows, turns.request_of([0], [event], ()), turns.CLOCK)
        return [name for name, count in self.counts().items() if count > before[name]]

    def counts(self):
        return {
            f"{outer}{name}": agent.count.get(0, 0)
            for outer, group in self.group.members.items()
            for name, agent in group.members.items()
        }

    def observe(self, *, over=(), is_last=False, pay=0.0):
        own = {
            name: {"reward": pay, "terminated": name in over, "truncated": False} for name in NAMES
        }
        event = {"x": 0.5, "reward": 0.0, "terminated": False, "truncated": is_last, "duration": 1}
        event |= {"end": 0, "below": 0, "tested": False, "own": own}
        self.group.observe(self.rows, turns.outcome_of([0], [event], NAMES), turns.CLOCK)


JOINT = spaces.Dict(dict.fromkeys(NAMES, spaces.Discrete(CHOICES)))
ALONE = spaces.Discrete(CHOICES)


def test_inner_turns_go_on_until_a_real_episode_begins():
    outer = Outer(action=ALONE, arbiter=rl.Turns(), whole=True)
    found = []
    for step in range(10):
        found += outer.act(starts=True, real=step in (0, 7))
        outer.observe(is_last=True)  # each step is a sub-episode
    assert found == ["ga", "ha", "gb", "hb", "ga", "ha", "gb", "ga", "ha", "gb"]


def test_member_whose_episode_is_over_waits_for_the_real_one_in_every_group():
    outer = Outer(action=JOINT, own=("terminated",))
    assert outer.act(starts=True, real=True) == ["ga", "gb"]
    outer.observe(over="a", is_last=True)
    assert outer.act(starts=True) == ["hb"]  # it was over before the group has acted
    outer.observe(is_last=True)
    assert outer.act(starts=True) == ["gb"]  # and is in a later sub-episode
    outer.observe(is_last=True)
    assert outer.act(starts=True, real=True) == ["ga", "gb"]
    outer.observe()
    assert outer.act() == ["ha", "hb"]


def test_rewards_and_ends_of_inner_members_are_those_of_all_steps_until_they_act_again():
    outer = Outer(action=JOINT, own=("reward", "terminated"))
    outer.act(starts=True, real=True)
    outer.observe(pay=1.0, over="a")
    outer.act()
    outer.observe(pay=2.0)
    assert outer.act() == ["gb"]
    kept = {name: agent.kept[0] for name, agent in outer.group.members["g"].members.items()}
    ((*_, reward, terminated, truncated, duration, _, _, _, _),) = kept["a"]
    assert (reward, terminated, truncated, duration) == (3.0, True, False, 2)
    ((*_, reward, terminated, truncated, duration, _, _, _, _),) = kept["b"]
    assert (reward, terminated, truncated, duration) == (3.0, False, False, 2)


def test_inner_rewards_are_refused_where_they_would_have_to_be_discounted():
    with pytest.raises(rl.ConfigurationError, match=r"'a' of 'g'.*not discounted.*set discount=1"):
        Outer(action=JOINT, own=("reward",), discount=0.5)


def test_discount_without_an_arbiter_is_refused():
    with pytest.raises(rl.ParameterError, match=r"discount=0\.5.*no arbiter; leave it out"):
        AgentGroupParameters(members=inner("g").agent.members, discount=0.5)


def test_parts_of_a_request_keep_where_real_episodes_begin():
    event = {"x": 0.5, "turn": "", "starts": True, "episode_start": True}
    events = [{**event, "real_start": real} for real in (True, False, True)]
    part = turns.request_of([0, 1, 2], events, ()).rows_of(np.array([1, 2]))
    assert part.real.tolist() == [False, True]
    assert part.rows.tolist() == [1, 2]


def obstacle(*rollouts, steps=150, **settings):
    members = tuple(
        GroupMember(agent=ppo(name, rollout))
        for name, rollout in zip("abc", rollouts, strict=False)
    )
    group = AgentGroupParameters(members=members, **settings)
    return group.obstacle_to_learning(num_envs=1, steps=steps, heatup=0)


@pytest.mark.parametrize(
    ("rollouts", "arbiter", "expected"),
    [
        ((100, 75), rl.Turns(), None),
        ((100, 76), rl.Turns(), "agent 'b' would learn nothing: a rollout has 76 decisions, .* 75"),
        ((100, 100), rl.Turns(order=("b", "b", "a", "b")), "agent 'a' .* the run 50 after"),
        ((100, 150), rl.EnvironmentTurns(), None),
        ((9, 9), rl.SelectedTurns(agent=ppo("s", 30), every=5), None),
        ((9, 9), rl.SelectedTurns(agent=ppo("s", 31), every=5), "agent 's' .* the run 30 after"),
    ],
)
def test_agents_in_turn_and_their_selector_are_asked_whether_they_learn(
    rollouts, arbiter, expected
):
    found = obstacle(*rollouts, arbiter=arbiter) or ""
    assert re.fullmatch(f"({expected}).*" if expected else "", found)
