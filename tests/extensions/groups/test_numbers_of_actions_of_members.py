"""Too few actions for the rows are refused in groups and graphs of levels, too."""

from dataclasses import replace

import pytest

import coach_rl as rl
from tests.agents.small_agents import ddpg
from tests.agents.test_numbers_of_actions import (
    PlannerParameters,
    bare,
    check_refused_and_named,
    low,
    one,
    scripted,
    top,
    two,
)


def group(first, arbiter=None):
    members = (rl.GroupMember(agent=first), rl.GroupMember(agent=ddpg("b")))
    if arbiter is None:
        members = tuple(replace(each, actions=str(n)) for n, each in enumerate(members))
    return rl.AgentGroupParameters(members=members, arbiter=arbiter)


def chooses(policy):
    return rl.SelectedTurns(agent=scripted(policy))


SELECTING = rl.LevelGraph(below={"top": ("a", "b")})
PLACES = {
    "in a graph": lambda each: top(
        scripted(each), low(name="a", horizon=3), low(name="b", horizon=3)
    ),
    "member": lambda each: top(group(scripted(each))),
    "member in turn": lambda each: top(group(scripted(each), rl.Turns())),
    "selector": lambda each: top(group(ddpg("a"), chooses(each))),
    "planner in a graph": lambda each: top(
        PlannerParameters(policy=each),
        low(name="a", horizon=3),
        low(name="b", horizon=3),
    ),
    "planner as a member": lambda each: top(group(PlannerParameters(policy=each), rl.Turns())),
}


@pytest.mark.parametrize("policy", [one, two, bare])
@pytest.mark.parametrize("place", PLACES)
def test_member_with_other_numbers_of_actions_than_rows_is_refused_and_named(place, policy):
    names = {"planner as a member": "Planner.act", "planner in a graph": "top"}
    graph = {"arrangement": SELECTING} if "in a graph" in place else {}
    check_refused_and_named(PLACES[place](policy), names.get(place, policy.__name__), **graph)
